use idem_core::{Error, idempotent};

struct Shop;

#[idempotent(prefix = "order:pay", key = "order_no")]
impl Shop {
    async fn pay(order_no: String) -> Result<String, Error> {
        Ok(order_no)
    }
}

fn main() {}
