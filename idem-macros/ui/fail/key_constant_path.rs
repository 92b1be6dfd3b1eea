use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

mod ids {
    pub const ORDER: &str = "order";
}

#[idempotent(prefix = "order:pay", key = (crate::ids::ORDER, i32::MAX, 7 as u64, true))]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
