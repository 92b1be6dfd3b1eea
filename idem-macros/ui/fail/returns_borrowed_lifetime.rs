use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no")]
async fn pay<'a>(request: &'a Request) -> Result<std::borrow::Cow<'a, str>, Error> {
    Ok((&request.order_no).into())
}

fn main() {}
