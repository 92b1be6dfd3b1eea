//! Methods whose bodies `async_trait` has boxed before the attribute sees them.

use std::sync::Arc;

use async_trait::async_trait;
use idem_core::record::Status;
use idem_core::{Error, Idempotency, Key, Recovered, idempotent};

use crate::shop::Request;

#[async_trait]
trait Pays: Send + Sync {
    async fn pay(&self, request: &Request) -> Result<u32, Error>;
    async fn take(self: Arc<Self>, request: Request) -> Result<u32, Error>;
}

struct Shop {
    engine: Idempotency,
    tenant: String,
}

#[async_trait]
impl Pays for Shop {
    #[idempotent(prefix = "trait:pay", key = "{self.tenant}:{request.order_no}", engine = self.engine)]
    async fn pay(&self, request: &Request) -> Result<u32, Error> {
        let number = request.body().await;
        if self.tenant.is_empty() {
            return Err(Error::NotInstalled);
        }
        Ok(number)
    }

    #[idempotent(prefix = "trait:take", key = request.order_no, engine = self.engine, detach = true)]
    async fn take(self: Arc<Self>, request: Request) -> Result<u32, Error> {
        Ok(request.body().await)
    }
}

// M06
#[tokio::test]
async fn the_record_is_processing_while_the_body_awaits_and_a_success_after_it() {
    let engine = Idempotency::memory();
    let shop = Arc::new(Shop {
        engine: engine.clone(),
        tenant: "T".into(),
    });
    let (request, held) = Request::held("A");
    let key = Key::new("trait:pay", ("T", "A")).unwrap();
    let status = async || engine.peek(&key).await.unwrap().map(|record| record.status);

    let (paying, paid) = (shop.clone(), request.clone());
    let unpolled = paying.pay(&paid);
    assert_eq!(status().await, None);
    drop(unpolled);

    let call = tokio::spawn(async move { paying.pay(&paid).await });
    held.entered().await;
    assert_eq!(status().await, Some(Status::Processing));
    let refused = shop.pay(&request).await;
    assert!(
        matches!(refused, Err(Error::InProgress { .. })),
        "{refused:?}"
    );
    held.release();
    assert_eq!(call.await.unwrap().unwrap(), 1);
    assert_eq!(status().await, Some(Status::Success));
    assert_eq!(shop.pay(&request).await.unwrap(), 1);
    assert_eq!(request.bodies.count(), 1);
}

// M06
#[tokio::test]
async fn a_trait_object_and_an_arc_receiver_work_alike() {
    let shop: Arc<dyn Pays> = Arc::new(Shop {
        engine: Idempotency::memory(),
        tenant: "T".into(),
    });
    let request = Request::new("A");
    assert_eq!(shop.clone().take(request.clone()).await.unwrap(), 1);
    assert_eq!(shop.clone().take(request.clone()).await.unwrap(), 1);
    assert_eq!(shop.pay(&request).await.unwrap(), 2);
    assert_eq!(shop.pay(&request).await.unwrap(), 2);
}

/// A blank part is missing in a boxed body, too.
#[tokio::test]
async fn a_missing_part_is_refused() {
    let shop = Shop {
        engine: Idempotency::memory(),
        tenant: String::new(),
    };
    let request = Request::new("A");
    let refused = shop.pay(&request).await;
    let Err(Error::MissingKey { part }) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(part, "self.tenant");
    assert_eq!(request.bodies.count(), 0);
}

#[async_trait]
trait Charges {
    async fn charge(
        &self,
        order_no: String,
        tenant: &str,
        amount: (u32, u8),
        note: &str,
    ) -> Result<String, Error>;
}

impl Shop {
    async fn look_up(
        &self,
        order_no: &str,
        tenant: &str,
        amount: &u32,
        note: &str,
    ) -> Result<Recovered<String>, Error> {
        tokio::task::yield_now().await;
        let told = format!("{} {order_no} {tenant} {amount} {note}", self.tenant);
        Ok(Recovered::Done(told))
    }
}

#[async_trait]
impl Charges for Shop {
    #[idempotent(prefix = "trait:charge", key = "order_no", engine = self.engine, on_error = "abandon", recover = Self::look_up)]
    async fn charge(
        &self,
        order_no: String,
        tenant: &str,
        (amount, _): (u32, u8),
        note: &str,
    ) -> Result<String, Error> {
        assert_eq!(format!("{order_no}{tenant}{amount}{note}"), "AB7C");
        Err(Error::NotInstalled)
    }
}

/// async-trait takes up the owned arguments, and leaves the borrowed ones alone.
#[tokio::test]
async fn a_path_of_recover_gets_the_arguments_in_their_order() {
    let shop = Shop {
        engine: Idempotency::memory(),
        tenant: "T".into(),
    };
    let failed = shop.charge("A".into(), "B", (7, 0), "C").await;
    assert!(matches!(failed, Err(Error::NotInstalled)), "{failed:?}");
    let found = shop.charge("A".into(), "B", (7, 0), "C").await;
    assert_eq!(found.unwrap(), "T A B 7 C");
}
