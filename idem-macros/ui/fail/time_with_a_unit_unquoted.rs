use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no", expire = 7d, lease = 500ms, wait = 5s)]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

#[idempotent(prefix = "order:ship", key = "request.order_no", expire = 600u32)]
async fn ship(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
