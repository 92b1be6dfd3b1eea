//! Asking for a lock.

use std::time::Duration;

use super::LockGuard;
use crate::engine::Idempotency;
use crate::engine::admit::{Admission, Request};
use crate::error::Error;
use crate::key::Key;
use crate::policy::{Policy, Settings};

/// A lock that is about to be asked for. Made by [`Idempotency::lock`].
#[derive(Debug, Clone)]
#[must_use = "nothing is locked before this is acquired"]
pub struct LockRequest {
    idem: Idempotency,
    key: Key,
    policy: Policy,
}

impl Idempotency {
    /// A lock on `key`: one holder at a time, among all processes on this store.
    ///
    /// It is not reentrant, and it is advice: see [the module](crate::lock) for what the fence is
    /// there for.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), idem_core::Error> {
    /// use std::time::Duration;
    /// use idem_core::{Error, Idempotency, Key};
    ///
    /// let idem = Idempotency::memory();
    /// let stock = idem.lock(Key::new("stock", 7)?).lease(Duration::from_secs(30));
    ///
    /// let held = stock.clone().wait(Duration::from_secs(10)).acquire().await?;
    /// let refused = stock.clone().acquire().await;
    /// assert!(matches!(refused, Err(Error::InProgress { .. })));
    ///
    /// let fence = held.fence(); // for what is written to
    /// held.release().await?;
    /// assert!(stock.acquire().await?.fence() > fence);
    /// # Ok(()) }
    /// ```
    pub fn lock(&self, key: Key) -> LockRequest {
        LockRequest {
            idem: self.clone(),
            key,
            policy: Policy::new(),
        }
    }
}

impl LockRequest {
    /// With what a function with `#[locked]` says.
    pub(crate) fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// How long to wait for the holder before: not at all unless said.
    pub fn wait(self, wait: Duration) -> Self {
        let policy = self.policy.wait_in_progress().wait(wait);
        Self { policy, ..self }
    }

    /// How long a holder of which nothing is heard keeps the lock: 1 s to 24 h, the engine's unless
    /// said (30 s). It is renewed in the background, at a third of it.
    pub fn lease(self, lease: Duration) -> Self {
        let policy = self.policy.lease(lease);
        Self { policy, ..self }
    }

    /// The text a refused user sees: [`Error::message`].
    pub fn message(self, message: &'static str) -> Self {
        let policy = self.policy.message(message);
        Self { policy, ..self }
    }

    /// Acquires the lock, or waits for it as long as [`wait`](Self::wait) says. The lease counts
    /// from the claim that was granted.
    ///
    /// # Errors
    /// [`Error::InProgress`] if somebody holds it, [`Error::Store`] if the store gave no answer,
    /// [`Error::InvalidPolicy`] for a lease that can not be kept, [`Error::LeaseLost`] if the grant
    /// was heard so late that it counts as lost, [`Error::Refused`] while an operator's
    /// [`refuse`](Idempotency::refuse) of the lock's key stands.
    ///
    /// # Cancel safety
    /// Dropped, it holds nothing: a grant that comes after it is given up.
    ///
    /// # Concurrent calls on the same key
    /// One gets the lock. Those who wait are woken by its release, and one of them gets it next;
    /// there is no order among them.
    pub async fn acquire(self) -> Result<LockGuard, Error> {
        // Boxed, so that a future which acquires grows by a pointer and not by all of this.
        Box::pin(self.ask()).await
    }

    /// [`acquire`](Self::acquire) without waiting, whatever was said before.
    ///
    /// # Errors
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire).
    pub async fn try_acquire(self) -> Result<LockGuard, Error> {
        let policy = self.policy.reject_in_progress();
        Self { policy, ..self }.acquire().await
    }

    async fn ask(self) -> Result<LockGuard, Error> {
        let settings = self.settings()?;
        let core = &self.idem.core;
        let of_lock = self.key.of_lock();
        let request = Request {
            core,
            key: if core.hash_keys {
                of_lock.hashed()
            } else {
                of_lock
            },
            subject: None,
            fingerprint: None,
            settings,
        };
        match request.admit().await? {
            Admission::Run(guard) => LockGuard::new(self.key, guard),
            // No lock writes a result, and none is held without an answer.
            Admission::Replay { .. } | Admission::ReplayError { .. } | Admission::Unguarded(_) => {
                let context = request.context();
                Err(Error::Damaged { context })
            }
        }
    }

    fn settings(&self) -> Result<Settings, Error> {
        let core = &self.idem.core;
        self.policy.settings_of_lock(&core.defaults, &core.times)
    }
}
