//! The crate `cached` 4 with Redis: GET, and SET when there was nothing. No guard: two callers at
//! once both run.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use cached::{AsyncRedisCache, ConcurrentCachedAsync, SerializeCachedAsync};

use super::{EXPIRE, Side};
use crate::order::{Order, Receipt, receipt};

pub(crate) struct Cached(AsyncRedisCache<String, Receipt>);

impl Side for Cached {
    async fn connect(url: &str) -> Result<Self> {
        let cache = AsyncRedisCache::builder("bench:")
            .namespace("idem.peer:")
            .ttl(Duration::from_secs(EXPIRE))
            .connection_string(url)
            .build();
        Ok(Self(cache.await?))
    }

    async fn pay(&self, order: Order) -> Result<()> {
        if let Some(receipt) = self.0.async_cache_get(&order.number).await? {
            black_box(receipt);
            return Ok(());
        }
        let receipt = receipt(&order);
        self.0.async_cache_set_ref(&order.number, &receipt).await?;
        black_box(receipt);
        Ok(())
    }
}
