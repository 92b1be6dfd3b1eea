use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

const RETENTION: u64 = 600;

#[idempotent(prefix = "order:pay", key = "request.order_no", expire = RETENTION)]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
