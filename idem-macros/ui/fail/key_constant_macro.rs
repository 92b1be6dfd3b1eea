use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = concat!("request", ".order_no"))]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
