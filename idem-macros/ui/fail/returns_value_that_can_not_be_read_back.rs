use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[derive(serde::Serialize)]
struct Receipt(String);

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay(request: Request) -> Result<Receipt, Error> {
    Ok(Receipt(request.order_no))
}

fn main() {}
