use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

async fn lookup(_: &str) -> Result<idem_core::Recovered<String>, Error> {
    Ok(idem_core::Recovered::NotDone)
}

#[idempotent(prefix = "order:pay", key = "request.order_no", recover = lookup)]
async fn pay(request: Request) -> Result<String, Error> {
    Ok(request.order_no)
}

fn main() {}
