use idem_core::{Error, idempotent};

use async_trait::async_trait;

#[async_trait]
trait Pays {
    async fn pay(&self, order_no: String) -> Result<String, Error>;
}

struct Shop;

#[async_trait]
impl Pays for Shop {
    #[idempotent(prefix = "order:pay", key = "oder_no")]
    async fn pay(&self, order_no: String) -> Result<String, Error> {
        Ok(order_no)
    }
}

fn main() {}
