use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no")]
fn pay(request: Request) -> std::pin::Pin<Box<dyn Future<Output = Result<String, Error>>>> {
    let order_no = request.order_no;
    Box::pin(async move { Ok(order_no) })
}

fn main() {}
