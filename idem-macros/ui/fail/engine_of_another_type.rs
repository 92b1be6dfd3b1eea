use idem_core::{Error, idempotent};

struct Engine;

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no", engine = Engine)]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
