use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no", forget = true, on_duplicate = "reject")]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
