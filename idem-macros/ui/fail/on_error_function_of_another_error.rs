use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

fn classify(_: &String) -> idem_core::OnError {
    idem_core::OnError::Fail
}

#[idempotent(prefix = "order:pay", key = "request.order_no", on_error = classify)]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
