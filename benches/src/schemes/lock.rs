//! A lock that nobody else wants is acquired and released.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use idem_core::{Idempotency, Key};
use redis::aio::MultiplexedConnection;
use redis::{Script, cmd};

use crate::rounds::Call;
use crate::sides::raw::{command, connection};

const LEASE_MS: u64 = 30_000;

const RELEASE: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])";

/// Without a fence, a renewal, or anybody who is woken.
pub(super) struct Raw {
    connection: MultiplexedConnection,
    release: Script,
    holders: AtomicU64,
}

impl Raw {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let release = Script::new(RELEASE);
        let connection = connection(url, &[&release]).await?;
        Ok(Self {
            connection,
            release,
            holders: AtomicU64::new(0),
        })
    }
}

impl Call for Raw {
    async fn call(&self, number: u64) -> Result<()> {
        let mut connection = self.connection.clone();
        let holder = u128::from(self.holders.fetch_add(1, Ordering::Relaxed)).to_be_bytes();
        let key = format!("idem:bench:lock::{number}");
        let is_held: bool = cmd("SET")
            .arg(&key)
            .arg(&holder)
            .arg("NX")
            .arg("PX")
            .arg(LEASE_MS)
            .query_async(&mut connection)
            .await?;
        let release = command(&self.release, &key, &[&holder]);
        let is_released: bool = release.query_async(&mut connection).await?;
        ensure!(is_held && is_released, "a lock that nobody wants was lost");
        Ok(())
    }
}

pub(super) struct Ours(Idempotency);

impl Ours {
    pub(super) fn new(idem: &Idempotency) -> Self {
        Self(idem.clone())
    }
}

impl Call for Ours {
    async fn call(&self, number: u64) -> Result<()> {
        let held = self
            .0
            .lock(Key::new("bench:lock", number)?)
            .acquire()
            .await?;
        Ok(held.release().await?)
    }
}
