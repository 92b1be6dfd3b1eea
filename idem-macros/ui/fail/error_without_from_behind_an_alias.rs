use idem_core::idempotent;

struct Request {
    order_no: String,
}

struct PayError;

type Answer<T> = Result<T, PayError>;

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay(request: Request) -> Answer<String> {
    let _ = PayError;
    Ok(request.order_no)
}

fn main() {}
