use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
    tags: std::collections::HashMap<String, String>,
}

#[idempotent(prefix = "order:pay", key = "request.tags")]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
