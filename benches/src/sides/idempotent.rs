//! The crate `idempotent` 2: claim, run, store, in Redis.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, bail};
use idempotent::valkey::ValkeyStore;
use idempotent::{ExecutionOutcome, IdempotencyKey, IdempotencyStore};

use super::{EXPIRE, Side};
use crate::order::{Order, receipt};

const LEASE: Duration = Duration::from_secs(30);

pub(crate) struct Idempotent(ValkeyStore);

impl Side for Idempotent {
    async fn connect(url: &str) -> Result<Self> {
        let store = ValkeyStore::with_url(url)
            .prefix("idem.bench.peer")
            .try_build();
        Ok(Self(store.await?))
    }

    async fn pay(&self, order: Order) -> Result<()> {
        let key = IdempotencyKey::new(order.number.as_str())?;
        let request = serde_json::to_vec(&order)?;
        let outcome = self
            .0
            .claim(&key, LEASE)
            .fingerprint("POST /pay", &request)
            .json()
            .execute_or_replay(Duration::from_secs(EXPIRE), async |_| Ok(receipt(&order)))
            .await?;
        match outcome {
            ExecutionOutcome::Executed(receipt) | ExecutionOutcome::Replayed(receipt) => {
                black_box(receipt);
                Ok(())
            }
            _ => bail!("neither run nor replayed"),
        }
    }
}
