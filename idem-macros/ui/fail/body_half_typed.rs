use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay(request: Request) -> Result<String, Error> {
    request.
}

async fn caller(request: Request) -> Result<String, Error> {
    pay(request).await
}

fn main() {}
