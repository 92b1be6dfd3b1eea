use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

// M11: callers of a function with a mistake in its attribute get no error of their own.
#[idempotent(prefix = "order:pay", key = "request.order_no", expire = "x")]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

async fn caller(request: Request) -> Result<String, Error> {
    pay(request).await
}

fn main() {}
