use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
    amount: f64,
}

#[idempotent(prefix = "order:pay", key = "request.amount")]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
