use idem_core::idempotent;

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order pay", key = "reqest.order_no", expire = 0, retries = 3)]
fn pay(request: Request) -> String {
    request.order_no
}

fn main() {}
