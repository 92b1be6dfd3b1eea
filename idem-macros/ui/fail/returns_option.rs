use idem_core::idempotent;

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay(request: Request) -> Option<String> {
    Some(request.order_no)
}

fn main() {}
