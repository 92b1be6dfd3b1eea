use idem_core::{Error, idempotent};
use sqlx::PgPool;

#[idempotent(prefix = "order:pay", key = order_no, tx = pool)]
async fn pay(pool: &PgPool, order_no: u64) -> Result<u64, Error> {
    let _ = pool;
    Ok(order_no)
}

fn main() {}
