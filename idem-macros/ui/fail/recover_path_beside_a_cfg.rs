use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no", recover = lookup)]
async fn pay(request: Request, #[cfg(any())] audit: Audit) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
