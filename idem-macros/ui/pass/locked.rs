//! Locks on functions of many shapes, alone and with the other attribute.
use std::time::Duration;

use idem_core::{Attempt, Error, Idempotency, Lock, idempotent, locked};

const LEASE: Duration = Duration::from_secs(10);

#[derive(Debug)]
enum StockError {
    Idem(Error),
}

impl From<Error> for StockError {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

type Taken<T> = Result<T, StockError>;

#[locked(prefix = "stock", key = "{item.0}/{shop?}", lease = LEASE, wait = "5s", message = "busy")]
async fn take<'a, T: AsRef<str>>(item: &'a (u32, T), shop: Option<&str>) -> Taken<&'a str>
where
    T: Sync,
{
    #![allow(unused_variables)]
    let lock = Lock::current().unwrap();
    assert!(lock.key().as_str().starts_with("stock::"));
    let unused = tokio::time::sleep(Duration::ZERO).await;
    Ok(item.1.as_ref())
}

mod prelude {
    pub use idem_core as runtime;
}

struct Shelf {
    idem: Idempotency,
}

impl Shelf {
    #[locked(prefix = "shelf", key = item, engine = self.idem, crate = crate::prelude::runtime)]
    #[idempotent(prefix = "shelf", key = item, engine = self.idem)]
    async fn inside(self: &std::sync::Arc<Self>, mut item: u32) -> Result<u32, Error> {
        assert!(Lock::current().is_some() && Attempt::current().is_some());
        item += 1;
        Ok(item)
    }

    #[idempotent(prefix = "shelf:outside", key = "item", engine = self.idem, detach = true)]
    #[locked(prefix = "shelf:outside", key = "item", engine = self.idem)]
    async fn outside(self: std::sync::Arc<Self>, item: u32) -> anyhow::Result<u32> {
        tokio::task::yield_now().await;
        // The body is in a task of its own.
        assert!(Lock::current().is_none() && Attempt::current().is_some());
        if item == 0 {
            anyhow::bail!("nothing");
        }
        Ok(item)
    }
}

#[async_trait::async_trait]
trait Store {
    async fn inside(&self, item: u32, shop: &str) -> Result<u32, StockError>;
    async fn outside(&self, item: u32, shop: &str) -> Taken<u32>;
}

#[async_trait::async_trait]
impl Store for Shelf {
    #[locked(prefix = "store", key = (shop, item), engine = self.idem)]
    #[idempotent(prefix = "store", key = "{shop}:{item}", engine = self.idem)]
    async fn inside(&self, mut item: u32, shop: &str) -> Result<u32, StockError> {
        assert!(Lock::current().is_some() && Attempt::current().is_some());
        item += 1;
        Ok(item)
    }

    #[idempotent(prefix = "store:outside", key = (shop, item), engine = self.idem)]
    #[locked(prefix = "store:outside", key = "{shop}:{item}", engine = self.idem)]
    async fn outside(&self, item: u32, shop: &str) -> Taken<u32> {
        assert!(Lock::current().is_some() && Attempt::current().is_some());
        Ok(item)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let idem = Idempotency::memory();
    let item = (7, "seven");
    assert_eq!(idem.scope(take(&item, Some("A"))).await.unwrap(), "seven");
    let missing = idem.scope(take(&item, None)).await;
    assert!(matches!(
        missing,
        Err(StockError::Idem(Error::MissingKey { .. }))
    ));
    let shelf = std::sync::Arc::new(Shelf { idem });
    for _ in 0..2 {
        assert_eq!(shelf.inside(1).await.unwrap(), 2);
        assert_eq!(shelf.clone().outside(1).await.unwrap(), 1);
        assert!(shelf.clone().outside(0).await.is_err());
        assert_eq!(Store::inside(&*shelf, 1, "A").await.unwrap(), 2);
        assert_eq!(Store::outside(&*shelf, 1, "A").await.unwrap(), 1);
    }
}
