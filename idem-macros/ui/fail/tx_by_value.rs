use idem_core::{Error, idempotent};
use sqlx::{Postgres, Transaction};

#[idempotent(prefix = "order:pay", key = order_no, tx = tx)]
async fn pay(tx: Transaction<'static, Postgres>, order_no: u64) -> Result<u64, Error> {
    let _ = tx;
    Ok(order_no)
}

fn main() {}
