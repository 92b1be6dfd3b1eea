use idem_core::{Error, idempotent};

struct Shop {
    tenant: String,
}

impl Shop {
    #[idempotent(prefix = "order:pay", key = "self.tenant", detach = true)]
    async fn pay(&self) -> Result<String, Error> {
        Ok(self.tenant.clone())
    }
}

fn main() {}
