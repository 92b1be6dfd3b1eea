use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

const ORDER: &str = "order";

#[idempotent(prefix = "order:pay", key = (ORDER, 7))]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
