use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay(request: Request) -> Result<String, Error> {
    let count: String = request.order_no.len();
    Ok(count)
}

fn main() {}
