//! Where records live.
//!
//! A [`Store`] has only atomic verbs: each reads one record, decides by
//! [`step`](crate::record::step()), and writes it, as one step that no other caller can come
//! between. All policy (who waits, who retries, what an answer means) sits above it, so a store of
//! your own is small.
//!
//! # A store of your own
//! This one is complete: records in a sorted map under one lock, on any
//! [`Clock`](memory::Clock). `idem_core::conformance`, behind the feature `conformance`, runs the
//! laws on it.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::ops::Bound;
//! use std::sync::{Mutex, MutexGuard, PoisonError};
//!
//! use idem_core::StoreError;
//! use idem_core::record::{
//!     self, Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Refuse, RefuseReply,
//!     Renew, RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime,
//! };
//! use idem_core::store::memory::Clock;
//! use idem_core::store::{Answer, Answered, Cursor, Page, Scan, Store, StoreKey};
//!
//! pub struct Shelf<C> {
//!     clock: C,
//!     slots: Mutex<BTreeMap<String, Slot>>,
//! }
//!
//! impl<C: Clock> Shelf<C> {
//!     fn slots(&self) -> MutexGuard<'_, BTreeMap<String, Slot>> {
//!         self.slots.lock().unwrap_or_else(PoisonError::into_inner)
//!     }
//!
//!     /// The heart of every store: read, decide and write as one step, and say at which time.
//!     fn write<R>(
//!         &self,
//!         key: &StoreKey,
//!         verb: impl FnOnce(Slot, StoreTime) -> (Slot, R),
//!     ) -> Answered<R> {
//!         let mut slots = self.slots();
//!         // Read under the lock: what waited for it must not be judged by the time before.
//!         let now = self.clock.now();
//!         let before = slots.get(key.as_str()).cloned().unwrap_or(Slot::Absent);
//!         let (after, reply) = verb(before, now);
//!         match after.live(now) {
//!             Slot::Absent => slots.remove(key.as_str()),
//!             after => slots.insert(key.as_str().to_owned(), after),
//!         };
//!         Ok(Answer { now, reply })
//!     }
//! }
//!
//! impl<C: Clock> Store for Shelf<C> {
//!     async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
//!         self.write(key, |slot, now| record::claim(slot, op, now))
//!     }
//!     async fn renew(&self, key: &StoreKey, op: &Renew) -> Answered<RenewReply> {
//!         self.write(key, |slot, now| record::renew(slot, op, now))
//!     }
//!     async fn settle(&self, key: &StoreKey, op: &Settle) -> Answered<SettleReply> {
//!         self.write(key, |slot, now| record::settle(slot, op, now))
//!     }
//!     async fn issue(&self, key: &StoreKey, op: &Issue) -> Answered<IssueReply> {
//!         self.write(key, |slot, now| record::issue(slot, *op, now))
//!     }
//!     async fn refuse(&self, key: &StoreKey, op: &Refuse) -> Answered<RefuseReply> {
//!         self.write(key, |slot, now| record::refuse(slot, *op, now))
//!     }
//!     async fn forget(&self, key: &StoreKey, op: &Forget) -> Answered<OperatorReply> {
//!         self.write(key, |slot, now| record::forget(slot, *op, now))
//!     }
//!     async fn resolve(&self, key: &StoreKey, op: &Resolve) -> Answered<OperatorReply> {
//!         self.write(key, |slot, now| record::resolve(slot, op, now))
//!     }
//!
//!     async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
//!         self.write(key, |slot, now| (slot.clone(), slot.visible(now)))
//!     }
//!
//!     async fn scan(&self, scan: &Scan) -> Answered<Page> {
//!         let (slots, now) = (self.slots(), self.clock.now());
//!         let begin = match &scan.cursor {
//!             None => Bound::Included(&scan.prefix),
//!             Some(Cursor(last)) => Bound::Excluded(last),
//!         };
//!         let found: Vec<_> = slots
//!             .range::<String, _>((begin, Bound::Unbounded))
//!             .take_while(|(key, _)| key.starts_with(&scan.prefix))
//!             .take(scan.page_size.max(1) as usize)
//!             .collect();
//!         let next = found.last().map(|(last, _)| Cursor((*last).clone()));
//!         let entries = found.into_iter().map(|(key, slot)| (key.clone(), slot.clone().visible(now)));
//!         let entries = entries.filter(|(_, slot)| *slot != Slot::Absent).collect();
//!         Ok(Answer { now, reply: Page { entries, next } })
//!     }
//!
//!     async fn now(&self) -> Result<StoreTime, StoreError> {
//!         Ok(self.clock.now())
//!     }
//! }
//!
//! # #[cfg(feature = "conformance")]
//! mod tests {
//!     # use super::*;
//!     use std::time::Duration;
//!
//!     use idem_core::conformance::Harness;
//!     use idem_core::store::memory::ManualClock;
//!
//!     #[derive(Default)]
//!     pub struct Shelves {
//!         clock: ManualClock,
//!     }
//!
//!     impl Harness for Shelves {
//!         type Store = Shelf<ManualClock>;
//!
//!         async fn fresh_store(&self) -> Self::Store {
//!             Shelf { clock: self.clock.clone(), slots: Mutex::default() }
//!         }
//!
//!         async fn pass_time(&self, time: Duration) {
//!             self.clock.advance(time);
//!         }
//!     }
//!
//!     idem_core::conformance_tests!(Shelves::default());
//! }
//! # fn main() {
//! #     // A doctest has no tests of its own, so the laws are called here.
//! #     #[cfg(feature = "conformance")]
//! #     tokio::runtime::Runtime::new().unwrap().block_on(async {
//! #         idem_core::conformance::run(&tests::Shelves::default()).await;
//! #     });
//! # }
//! ```
//!
//! What it lacks is what makes a store fit for service: bounded memory, the dropping of expired
//! records that nobody asks for, and a [`watch`](Store::watch) that spares waiters their polling.

mod erased;
mod key;
pub mod memory;
#[cfg(feature = "redis")]
pub mod redis;
mod shared;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub mod sql;
mod watchers;

pub(crate) use erased::ErasedStore;
pub use key::StoreKey;
pub(crate) use key::check_namespace;
pub use memory::MemoryStore;
#[cfg(feature = "redis")]
pub use redis::RedisStore;
#[cfg(feature = "mysql")]
pub use sql::MySqlStore;
#[cfg(feature = "postgres")]
pub use sql::PostgresStore;
#[cfg(feature = "sqlite")]
pub use sql::SqliteStore;

use std::future::Future;

use crate::error::StoreError;
use crate::record::{
    Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Refuse, RefuseReply, Renew,
    RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime,
};

/// A reply, with the store's time at which it was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<R> {
    /// The store's clock when it decided.
    pub now: StoreTime,
    /// What it decided.
    pub reply: R,
}

/// What a verb gives: an answer, or an error after which nobody knows whether the store did it.
pub type Answered<R> = Result<Answer<R>, StoreError>;

/// A store of records.
///
/// # Errors
/// Every verb fails with a [`StoreError`] when it has no answer. The caller may send the same
/// operation again: each is safe to be delivered any number of times.
///
/// Send each operation **once** a call, and switch off the retries of the client underneath. A client
/// that repeats a claim by itself, after its call was given up or its process went on, can take a
/// key that nobody holds then: only the engine knows which of its sends may still arrive, gives up
/// what it no longer wants, and puts a new deadline into what it sends again.
///
/// # Cancel safety
/// Dropping a verb's future leaves open whether the store did it; never half of it.
///
/// # Concurrent calls on the same key
/// Verbs on one key take effect one after the other, in any order.
pub trait Store: Send + Sync + 'static {
    /// Takes the record, or says why not.
    fn claim(
        &self,
        key: &StoreKey,
        op: &Claim,
    ) -> impl Future<Output = Answered<ClaimReply>> + Send;

    /// Prolongs the lease, or marks the checkpoint.
    fn renew(
        &self,
        key: &StoreKey,
        op: &Renew,
    ) -> impl Future<Output = Answered<RenewReply>> + Send;

    /// Finishes an attempt.
    fn settle(
        &self,
        key: &StoreKey,
        op: &Settle,
    ) -> impl Future<Output = Answered<SettleReply>> + Send;

    /// Issues a one-time token.
    fn issue(
        &self,
        key: &StoreKey,
        op: &Issue,
    ) -> impl Future<Output = Answered<IssueReply>> + Send;

    /// Refuses a request that has not come yet.
    fn refuse(
        &self,
        key: &StoreKey,
        op: &Refuse,
    ) -> impl Future<Output = Answered<RefuseReply>> + Send;

    /// Ends a record that is still as it was read.
    fn forget(
        &self,
        key: &StoreKey,
        op: &Forget,
    ) -> impl Future<Output = Answered<OperatorReply>> + Send;

    /// Says what an attempt did, if its record is still as it was read.
    fn resolve(
        &self,
        key: &StoreKey,
        op: &Resolve,
    ) -> impl Future<Output = Answered<OperatorReply>> + Send;

    /// Reads a record without changing it. Expired records and closed marks are absent.
    fn peek(&self, key: &StoreKey) -> impl Future<Output = Answered<Slot>> + Send;

    /// Reads records whose key text begins with `scan.prefix`, page by page, in no order; a record
    /// that stays during the whole scan is seen at least once.
    fn scan(&self, scan: &Scan) -> impl Future<Output = Answered<Page>> + Send;

    /// The store's time.
    fn now(&self) -> impl Future<Output = Result<StoreTime, StoreError>> + Send;

    /// Renews many attempts at once; the answers stand in the order of the batch. One by one
    /// unless the store has something better.
    fn renew_all(
        &self,
        batch: &[(StoreKey, Renew)],
    ) -> impl Future<Output = Vec<Answered<RenewReply>>> + Send {
        async move {
            let mut answers = Vec::with_capacity(batch.len());
            for (key, op) in batch {
                answers.push(self.renew(key, op).await);
            }
            answers
        }
    }

    /// Subscribes to the ends of attempts on `key`. When this returns, no later end is missed.
    /// Called on one runtime that lives as long as the process. Without push, waiters poll.
    fn watch(&self, key: &StoreKey) -> impl Future<Output = Result<Watch, StoreError>> + Send {
        let _ = key;
        async { Ok(Watch::never()) }
    }

    /// Reports a set-up in which records can vanish or answers can lie; empty if all is well.
    fn check(&self) -> impl Future<Output = Result<Vec<Finding>, StoreError>> + Send {
        async { Ok(Vec::new()) }
    }
}

/// Where to read on in a [`Store::scan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// What the key text begins with, namespace included.
    pub prefix: String,
    /// Where the page before ended; `None` for the first.
    pub cursor: Option<Cursor>,
    /// About how many records a page should hold.
    pub page_size: u32,
}

/// A place in a scan; its meaning belongs to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// A page of a [`Store::scan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The full key texts and what is there: records, or [`Slot::Damaged`].
    pub entries: Vec<(String, Slot)>,
    /// Where to read on; `None` at the end. A page may be empty before that.
    pub next: Option<Cursor>,
}

/// One doubt about a store's set-up, as [`Store::check`] reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable name, such as `eviction_policy`.
    pub code: &'static str,
    /// What was found, what it can cost, and what to set instead.
    pub detail: String,
}

/// A subscription to the ends of attempts on one key. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Watch {
    changes: Option<tokio::sync::watch::Receiver<u64>>,
}

impl Watch {
    /// A subscription that never reports anything.
    #[must_use]
    pub fn never() -> Self {
        Self { changes: None }
    }

    /// A subscription that reports each change of the counter behind `changes`, and its end.
    #[must_use]
    pub fn new(changes: tokio::sync::watch::Receiver<u64>) -> Self {
        Self {
            changes: Some(changes),
        }
    }

    /// Waits for the next report since the last call.
    ///
    /// # Cancel safety
    /// A report is not lost when this is dropped before it returns.
    pub async fn changed(&mut self) {
        if let Some(changes) = &mut self.changes {
            if changes.changed().await.is_ok() {
                return;
            }
            // The store gave up the subscription: say so once, then leave it to polling.
            self.changes = None;
            return;
        }
        std::future::pending::<()>().await;
    }
}
