//! A lock, as whoever works under it sees it.

use std::fmt;
use std::future::Future;

use crate::attempt::Attempt;
use crate::key::Key;
use crate::record::Fence;

tokio::task_local! {
    static CURRENT: Lock;
}

/// A lock that was acquired: its key, its fence, and whether it is still held.
///
/// Clones are cheap and name the same lock; they can go into spawned tasks, and do not keep it:
/// that is up to the [`LockGuard`](crate::LockGuard), or to the function with `#[locked]`.
#[derive(Clone)]
pub struct Lock {
    key: Key,
    attempt: Attempt,
}

impl Lock {
    pub(super) fn new(key: Key, attempt: Attempt) -> Self {
        Self { key, attempt }
    }

    /// The lock of the innermost function with `#[locked]` whose body is being polled. In a task
    /// that the body spawns, use a clone: there is none in it, and so none in the body of a function
    /// with `#[idempotent(…, detach = true)]` where the lock is around that, as with `#[locked]` written
    /// below it. Refuse to go on then. A fence of 0 in its place is the same for everybody.
    ///
    /// # Examples
    /// ```
    /// use idem_core::{Error, Idempotency, Lock, locked};
    ///
    /// #[locked(prefix = "stock", key = item)]
    /// async fn take(item: u32) -> Result<i64, Error> {
    ///     let lock = Lock::current().expect("this body is locked");
    ///     Ok(lock.fence().as_i64())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
    /// # Idempotency::memory().scope(async {
    /// assert!(take(7).await? < take(7).await?);
    /// # Ok(()) }).await }
    /// ```
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs `future` with `self` as the current lock.
    pub(super) fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(self.clone(), future)
    }

    /// The key that is locked.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Higher than the fence of every holder before. Hand it to what is written to, and let that
    /// refuse a smaller one: see [the module](crate::lock).
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.attempt.fence()
    }

    /// Whether the holder before went away without a release, less than a day ago: what the lock
    /// protects may be half done.
    #[must_use]
    pub fn is_takeover(&self) -> bool {
        self.attempt.is_takeover()
    }

    /// Returns when the lock is no longer surely held: it could not be renewed for 0.8 of its
    /// lease, somebody ended it, or it was released.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn lost(&self) {
        self.attempt.lost().await;
    }

    /// Whether it is no longer surely held. Looks at the clock, too: a process that was stopped
    /// for a while sees it at once. After a machine's sleep, which that clock leaves out on Linux, it
    /// is seen at the next heartbeat.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.attempt.lose_if_late();
        self.attempt.is_lost()
    }

    pub(super) fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("attempt", &self.attempt)
            .field("is_lost", &self.attempt.is_lost())
            .finish_non_exhaustive()
    }
}
