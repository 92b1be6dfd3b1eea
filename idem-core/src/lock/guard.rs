//! Holding a lock.

use std::ops::Deref;
use std::panic::resume_unwind;
use std::pin::Pin;

use super::Lock;
use crate::engine::ask::late;
use crate::engine::guard::AttemptGuard;
use crate::engine::run::{Ended, until_it_ends};
use crate::error::Error;
use crate::key::Key;
use crate::record::{Outcome, SettleReply};

/// A lock, held until this is released or dropped. It reads as its [`Lock`].
///
/// While it is there the lease is renewed in the background, also while its holder blocks.
///
/// # Cancel safety
/// Dropped, also by a panic and after its runtime has ended, it stops its renewal at once, and the
/// background thread releases the lock. Use [`release`](Self::release) where it has to be free, or
/// a loss has to be known, before you go on.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    lock: Lock,
    guard: AttemptGuard,
}

impl Deref for LockGuard {
    type Target = Lock;

    fn deref(&self) -> &Lock {
        &self.lock
    }
}

impl LockGuard {
    pub(super) fn new(key: Key, mut guard: AttemptGuard) -> Result<Self, Error> {
        let lock = Lock::new(key, guard.attempt().clone());
        if guard.hold() {
            return Ok(Self { lock, guard });
        }
        let context = lock.attempt().context();
        Err(Error::LeaseLost { context })
    }

    /// The lock, for a task or a function below; it does not keep the lock.
    #[must_use]
    pub fn handle(&self) -> Lock {
        self.lock.clone()
    }

    /// Releases the lock, and wakes those who wait for it, one of whom gets it. Call it after the
    /// commit of what was done under the lock.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if it was lost before: somebody else may have had it, so do not trust
    /// what was done without a fence. [`Error::Store`] if the store gave no answer.
    ///
    /// # Cancel safety
    /// Dropped, or without an answer, the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        let Self { lock, guard } = self;
        let was_lost = lock.is_lost();
        let context = lock.attempt().context();
        let released = guard.settle(Outcome::Release).await;
        match released {
            _ if was_lost => Err(Error::LeaseLost { context }),
            Ok(SettleReply::Settled | SettleReply::Adopted) => Ok(()),
            Ok(SettleReply::Superseded { .. }) => Err(Error::LeaseLost { context }),
            Ok(SettleReply::Damaged) => Err(Error::Damaged { context }),
            Ok(SettleReply::Late) => Err(late().into()),
            Err(source) => Err(source.into()),
        }
    }

    /// Runs `body` under the lock, then releases it. [`Error::LeaseLost`] if the process went down
    /// meanwhile and the body was dropped.
    pub(crate) async fn run<F: Future>(self, body: Pin<Box<F>>) -> Result<F::Output, Error> {
        let lock = self.lock.clone();
        let ended = lock.scope(until_it_ends(lock.attempt(), body)).await;
        let context = lock.attempt().context();
        if let Err(error) = self.release().await {
            // What the body did stands; the fence has told what it wrote to.
            tracing::error!(%error, "a lock was not held to the end of its body, or its release goes on");
        }
        match ended {
            Ended::Returned(output) => Ok(output),
            Ended::Panicked(payload) => resume_unwind(payload),
            Ended::Stopped | Ended::NeverBegan => Err(Error::LeaseLost { context }),
        }
    }
}
