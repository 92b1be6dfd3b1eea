use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay(request: Request) -> Result<impl ToString, Error> {
    Ok(request.order_no)
}

fn main() {}
