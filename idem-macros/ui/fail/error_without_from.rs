use idem_core::idempotent;

struct Request {
    order_no: String,
}

struct PayError;

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay(request: Request) -> Result<String, PayError> {
    let _ = PayError;
    Ok(request.order_no)
}

fn main() {}
