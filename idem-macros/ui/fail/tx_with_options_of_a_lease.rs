use idem_core::{Error, idempotent};
use sqlx::{Postgres, Transaction};

#[idempotent(
    prefix = "order:pay",
    key = order_no,
    tx = tx,
    lease = "10s",
    on_abandoned = "rerun",
    checkpoint = true,
    recover = lookup,
    detach = true,
    on_store_error = "run",
    forget = true,
)]
async fn pay(tx: &mut Transaction<'_, Postgres>, order_no: u64) -> Result<u64, Error> {
    let _ = tx;
    Ok(order_no)
}

fn main() {}
