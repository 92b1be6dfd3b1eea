//! M04, M17
use std::sync::Arc;

use idem_core::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Shop {
    tenant: String,
    sold: u32,
}

impl Shop {
    const STEP: u32 = 2;

    #[idempotent(prefix = "shop:by_ref", key = "{self.tenant}:{id}")]
    async fn by_ref(&self, id: u32) -> Result<u32, Error> {
        Ok(self.sold + id * Self::STEP)
    }

    #[idempotent(prefix = "shop:by_mut", key = (self.tenant, id))]
    async fn by_mut(&mut self, id: u32) -> Result<u32, Error> {
        self.sold += id;
        Ok(self.sold)
    }

    #[idempotent(prefix = "shop:by_value", key = "self.tenant")]
    async fn by_value(self) -> Result<Self, Error> {
        Ok(Self { sold: Self::STEP, ..self })
    }

    #[idempotent(prefix = "shop:by_arc", key = "self.tenant", detach = true)]
    async fn by_arc(self: Arc<Self>) -> Result<Self, Error> {
        Ok(Self::clone(&self))
    }

    #[idempotent(prefix = "shop:by_typed_ref", key = "self.tenant")]
    async fn by_typed_ref(self: &Self) -> Result<u32, Error> {
        Ok(self.sold)
    }

    #[idempotent(prefix = "shop:made", key = "tenant")]
    async fn made(tenant: String) -> Result<Self, Error> {
        Ok(Self { tenant, sold: 0 })
    }
}

struct Other;

impl Other {
    #[idempotent(prefix = "other:by_ref", key = "id")]
    async fn by_ref(&self, id: u32) -> Result<u32, Error> {
        Ok(id)
    }
}

trait Pays {
    async fn pay(&self, id: u32) -> Result<u32, Error>;
}

impl Pays for Other {
    #[idempotent(prefix = "other:pay", key = "id")]
    async fn pay(&self, id: u32) -> Result<u32, Error> {
        Ok(id + 1)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    let mut shop = Shop::made("T".into()).await.unwrap();
    assert_eq!(shop.by_ref(3).await.unwrap(), 6);
    assert_eq!(shop.by_mut(3).await.unwrap(), 3);
    assert_eq!(shop.by_typed_ref().await.unwrap(), 3);
    assert_eq!(Arc::new(shop.clone()).by_arc().await.unwrap(), shop);
    assert_eq!(shop.by_value().await.unwrap().sold, 2);
    assert_eq!(Other.by_ref(1).await.unwrap(), 1);
    assert_eq!(Other.pay(1).await.unwrap(), 2);
}
