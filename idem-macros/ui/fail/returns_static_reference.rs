use idem_core::{Error, idempotent};

#[idempotent(prefix = "order:pay", key = "order_no")]
async fn pay(order_no: String) -> Result<&'static str, Error> {
    drop(order_no);
    Ok("paid")
}

fn main() {}
