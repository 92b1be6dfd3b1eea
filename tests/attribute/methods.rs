//! Methods: every receiver, one name twice, `Self`.

use std::sync::Arc;

use idem_core::{Error, idempotent};
use serde::{Deserialize, Serialize};

use crate::shop::{Request, with_engine};

struct Shop {
    tenant: &'static str,
    paid: u32,
}

struct Other;

impl Shop {
    const NAME: &'static str = "shop";

    #[idempotent(prefix = "shop:by_ref", key = "{self.tenant}:{request.order_no}")]
    async fn pay(&self, request: &Request) -> Result<String, Error> {
        Ok(format!(
            "{} {} {}",
            Self::NAME,
            self.tenant,
            request.body().await
        ))
    }

    #[idempotent(prefix = "shop:by_mut", key = request.order_no)]
    async fn add(&mut self, request: &Request) -> Result<u32, Error> {
        self.paid += request.body().await;
        Ok(self.paid)
    }

    #[idempotent(prefix = "shop:by_value", key = (self.tenant, request.order_no))]
    async fn close(self, request: &Request) -> Result<u32, Error> {
        request.body().await;
        Ok(self.paid)
    }

    #[idempotent(prefix = "shop:by_arc", key = "self.tenant")]
    async fn share(self: Arc<Self>, request: Request) -> Result<u32, Error> {
        Ok(request.body().await + self.paid)
    }
}

impl Other {
    #[idempotent(prefix = "other", key = "request.order_no")]
    async fn pay(&self, request: &Request) -> Result<String, Error> {
        Ok(format!("other {}", request.body().await))
    }
}

// M04
#[tokio::test]
async fn methods_of_one_name_and_of_every_receiver() {
    with_engine(async |_| {
        let request = Request::new("A");
        let mut shop = Shop {
            tenant: "T",
            paid: 0,
        };
        assert_eq!(shop.pay(&request).await.unwrap(), "shop T 1");
        assert_eq!(shop.pay(&request).await.unwrap(), "shop T 1");
        let neighbour = Shop {
            tenant: "U",
            paid: 0,
        };
        assert_eq!(neighbour.pay(&request).await.unwrap(), "shop U 2");
        assert_eq!(Other.pay(&request).await.unwrap(), "other 3");
        assert_eq!(Other.pay(&request).await.unwrap(), "other 3");

        assert_eq!(shop.add(&request).await.unwrap(), 4);
        assert_eq!(shop.add(&request).await.unwrap(), 4);
        assert_eq!(shop.paid, 4);
        for tenant in ["T", "T"] {
            let shop = Arc::new(Shop { tenant, paid: 0 });
            assert_eq!(shop.share(request.clone()).await.unwrap(), 5);
        }
        assert_eq!(shop.close(&request).await.unwrap(), 4);
        let other = Shop {
            tenant: "T",
            paid: 9,
        };
        assert_eq!(other.close(&request).await.unwrap(), 4);
        assert_eq!(request.bodies.count(), 6);
    })
    .await;
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Account {
    owner: String,
}

impl Account {
    #[idempotent(prefix = "account", key = "request.order_no")]
    async fn open(request: Request) -> Result<Self, Error> {
        request.body().await;
        Ok(Self {
            owner: request.order_no,
        })
    }
}

// M17
#[tokio::test]
async fn self_in_a_signature_and_in_a_body() {
    with_engine(async |_| {
        let request = Request::new("A");
        let account = Account::open(request.clone()).await.unwrap();
        assert_eq!(Account::open(request.clone()).await.unwrap(), account);
        assert_eq!(request.bodies.count(), 1);
    })
    .await;
}
