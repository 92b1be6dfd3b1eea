use idem_core::{Error, idempotent};

trait Pays {
    #[idempotent(prefix = "order:pay", key = "order_no")]
    async fn pay(&self, order_no: String) -> Result<String, Error>;
}

fn main() {}
