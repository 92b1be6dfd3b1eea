use idem_core::idempotent;

struct Request {
    order_no: String,
}

type Answer = Option<String>;

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay(request: Request) -> Answer {
    Some(request.order_no)
}

fn main() {}
