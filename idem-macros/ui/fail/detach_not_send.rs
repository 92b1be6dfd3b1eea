use idem_core::{Error, idempotent};

struct Request {
    order_no: String,
}

#[idempotent(prefix = "order:pay", key = "request.order_no", detach = true)]
async fn pay(request: Request, shared: std::rc::Rc<u8>) -> Result<String, Error> {
    drop(shared);
    Ok(request.order_no)
}

fn main() {}
