//! Records in this process: the embedded default, and the store of tests.
//!
//! A [`MemoryStore`] runs [`step`](crate::record::step()) as it stands, each key's operations one
//! after the other. It loses everything with its process; what it promises ends there.

mod clock;
mod records;
mod scan;

#[cfg(test)]
mod tests;

pub use clock::{Clock, ManualClock, SystemClock};

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::records::Records;
use self::scan::Place;
use super::watchers::{MayEnd, Watchers};
use super::{Answer, Answered, Finding, Page, Scan, Store, StoreKey, Watch};
use crate::error::{StoreError, StoreErrorKind};
use crate::record::{
    self, Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Refuse, RefuseReply, Renew,
    RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime,
};

/// Records in this process, on a [`Clock`].
///
/// Expired records are dropped little by little, by the operations that come after. A full store
/// refuses new keys with a [`StoreError`] of the kind [`Refused`](StoreErrorKind::Refused): to
/// forget a record that has not expired could run a request twice, so that is done only when
/// [asked for](Self::evict).
///
/// # Examples
/// ```
/// use idem_core::store::memory::{ManualClock, MemoryStore};
///
/// let store = MemoryStore::new().capacity(10_000);
/// assert_eq!(store.len(), 0);
///
/// let clock = ManualClock::new();
/// let in_a_test = MemoryStore::with_clock(clock.clone());
/// # drop(in_a_test);
/// ```
pub struct MemoryStore<C: Clock = SystemClock> {
    clock: C,
    capacity: usize,
    evict: bool,
    held: AtomicUsize,
    evicted: AtomicU64,
    hasher: RandomState,
    shards: Box<[Shard]>,
}

#[derive(Default)]
struct Shard {
    records: Mutex<Records>,
    watchers: Watchers,
}

impl MemoryStore {
    /// An empty store on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock> MemoryStore<C> {
    const CAPACITY: usize = 1_000_000;
    const SHARDS: usize = 32;
    /// More than one, so that a store whose records expire shrinks while it is written to.
    const EXPIRED_DROPPED_BY_A_WRITE: usize = 4;
    /// From each shard; bounded, so that no single call pays for all that has expired.
    const EXPIRED_DROPPED_WHEN_FULL: usize = 64;

    /// An empty store on `clock`.
    #[must_use]
    pub fn with_clock(clock: C) -> Self {
        Self {
            clock,
            capacity: Self::CAPACITY,
            evict: false,
            held: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            hasher: RandomState::new(),
            shards: (0..Self::SHARDS).map(|_| Shard::default()).collect(),
        }
    }

    /// How many records it holds at most; 1,000,000 unless said.
    #[must_use]
    pub fn capacity(mut self, records: usize) -> Self {
        self.capacity = records;
        self
    }

    /// Whether a full store makes room by forgetting the record that finished first, although it
    /// has not expired. The request behind it can then run again.
    #[must_use]
    pub fn evict(mut self, evict: bool) -> Self {
        self.evict = evict;
        self
    }

    /// How many finished records were forgotten to make room.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// How many records take up room: also closed marks, and expired ones not yet dropped.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether nothing takes up room.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts something at `key` that is no record, as a foreign writer could in a shared store.
    #[cfg(any(test, feature = "conformance"))]
    pub fn damage(&self, key: &StoreKey) {
        self.write(key, |_, _| (Slot::Damaged, ()));
    }

    fn shard(&self, key: &str) -> &Shard {
        // The remainder is below the number of shards, so the cast is exact.
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of a usize")]
        let index = (self.hasher.hash_one(key) % self.shards.len() as u64) as usize;
        &self.shards[index]
    }

    /// Runs `verb` on the record at `key`, whether there is room for a new one or not: an owner
    /// that keeps or finishes its attempt is never turned away.
    fn write<R>(
        &self,
        key: &StoreKey,
        verb: impl FnOnce(Slot, StoreTime) -> (Slot, R),
    ) -> Answer<R> {
        let mut records = lock(&self.shard(&key.text).records);
        let now = self.clock.now();
        let before = records.get(&key.text);
        let was_absent = before == Slot::Absent;
        let (slot, reply) = verb(before, now);
        if was_absent && slot != Slot::Absent {
            self.held.fetch_add(1, Ordering::Relaxed);
        }
        self.put(&mut records, key, slot, now);
        Answer { now, reply }
    }

    /// Runs `verb` on the record at `key`, and refuses to add one to a full store.
    fn admit<R>(&self, key: &StoreKey, verb: impl Fn(Slot, StoreTime) -> (Slot, R)) -> Answered<R> {
        loop {
            let mut records = lock(&self.shard(&key.text).records);
            let now = self.clock.now();
            let before = records.get(&key.text);
            let was_absent = before == Slot::Absent;
            let (slot, reply) = verb(before, now);
            if !was_absent || slot == Slot::Absent || self.reserve() {
                self.put(&mut records, key, slot, now);
                return Ok(Answer { now, reply });
            }
            drop(records);
            if !self.make_room(now) {
                return Err(self.full());
            }
        }
    }

    fn put(&self, records: &mut Records, key: &StoreKey, slot: Slot, now: StoreTime) {
        let removed = records.put(&key.text, slot);
        let dropped = records.drop_expired(now, Self::EXPIRED_DROPPED_BY_A_WRITE);
        self.held
            .fetch_sub(usize::from(removed) + dropped, Ordering::Relaxed);
    }

    /// Counts one more record, unless the store is full.
    fn reserve(&self) -> bool {
        let one_more = |held| (held < self.capacity).then_some(held + 1);
        self.held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
    }

    /// Drops expired records or, if that is allowed, the oldest finished one. Called without a
    /// lock on any shard.
    fn make_room(&self, now: StoreTime) -> bool {
        let dropped = self
            .shards
            .iter()
            .map(|shard| lock(&shard.records).drop_expired(now, Self::EXPIRED_DROPPED_WHEN_FULL))
            .sum();
        self.held.fetch_sub(dropped, Ordering::Relaxed);
        dropped > 0 || (self.evict && self.evict_one())
    }

    fn evict_one(&self) -> bool {
        let oldest = self
            .shards
            .iter()
            .filter_map(|shard| Some((lock(&shard.records).oldest_finish()?, shard)))
            .min_by_key(|(at, _)| *at);
        let Some((_, shard)) = oldest else {
            return false;
        };
        // Another caller may have taken it in between; then the next round looks again.
        if lock(&shard.records).drop_oldest_finished() {
            self.held.fetch_sub(1, Ordering::Relaxed);
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Wakes those who wait for the end that `answer` may tell of.
    fn told<R: MayEnd>(&self, key: &StoreKey, answer: Answer<R>) -> Answer<R> {
        let watchers = &self.shard(&key.text).watchers;
        watchers.hear(&key.text, &answer.reply);
        answer
    }

    fn full(&self) -> StoreError {
        let detail = format!(
            "the memory store is full: {} records; raise its capacity, shorten `expire`, or let it evict",
            self.capacity
        );
        StoreError::new(StoreErrorKind::Refused, detail)
    }
}

impl<C: Clock> Store for MemoryStore<C> {
    async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
        self.admit(key, |slot, now| record::claim(slot, op, now))
    }

    async fn renew(&self, key: &StoreKey, op: &Renew) -> Answered<RenewReply> {
        Ok(self.write(key, |slot, now| record::renew(slot, op, now)))
    }

    async fn settle(&self, key: &StoreKey, op: &Settle) -> Answered<SettleReply> {
        Ok(self.told(
            key,
            self.write(key, |slot, now| record::settle(slot, op, now)),
        ))
    }

    async fn issue(&self, key: &StoreKey, op: &Issue) -> Answered<IssueReply> {
        self.admit(key, |slot, now| record::issue(slot, *op, now))
    }

    async fn refuse(&self, key: &StoreKey, op: &Refuse) -> Answered<RefuseReply> {
        let answer = self.admit(key, |slot, now| record::refuse(slot, *op, now))?;
        Ok(self.told(key, answer))
    }

    async fn forget(&self, key: &StoreKey, op: &Forget) -> Answered<OperatorReply> {
        Ok(self.told(
            key,
            self.write(key, |slot, now| record::forget(slot, *op, now)),
        ))
    }

    async fn resolve(&self, key: &StoreKey, op: &Resolve) -> Answered<OperatorReply> {
        Ok(self.told(
            key,
            self.write(key, |slot, now| record::resolve(slot, op, now)),
        ))
    }

    async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
        let records = lock(&self.shard(&key.text).records);
        let now = self.clock.now();
        let reply = records.get(&key.text).visible(now);
        Ok(Answer { now, reply })
    }

    async fn scan(&self, scan: &Scan) -> Answered<Page> {
        let place = Place::of(scan.cursor.as_ref())?;
        Ok(self.page(scan, place))
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.clock.now())
    }

    async fn watch(&self, key: &StoreKey) -> Result<Watch, StoreError> {
        Ok(self.shard(&key.text).watchers.subscribe(&key.text))
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let evicts = self.evict.then(|| Finding {
            code: "eviction_policy",
            detail:
                "the memory store evicts: a full one forgets requests that are done, which can \
                     then run again; raise `capacity` in place of `evict`"
                    .to_owned(),
        });
        Ok(evicts.into_iter().collect())
    }
}

impl<C: Clock> fmt::Debug for MemoryStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .field("evicted", &self.evicted())
            .finish_non_exhaustive()
    }
}

/// The shard's data. A panic can not leave it half changed: each write is made of steps that do
/// not call out, so a poisoned lock says nothing about it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
