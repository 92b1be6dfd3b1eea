use idem_core::idempotent;

#[idempotent(prefix = "order:pay", key = "order_no")]
struct Request {
    order_no: String,
}

fn main() {}
