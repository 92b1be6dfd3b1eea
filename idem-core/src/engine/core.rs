//! What all clones of an engine share.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::afterwards::Afterwards;
use super::away::Away;
use super::clock::StoreClock;
use super::heartbeat::Heartbeats;
use super::signal::Signal;
use super::wait::Waits;
use crate::error::Error;
use crate::policy::{EngineTimes, Policy};
use crate::store::{ErasedStore, StoreKey};

pub(crate) struct Core {
    pub(crate) store: Box<dyn ErasedStore>,
    pub(crate) clock: StoreClock,
    pub(crate) namespace: String,
    pub(crate) hash_keys: bool,
    pub(crate) defaults: Policy,
    pub(crate) times: EngineTimes,
    pub(crate) max_result_bytes: usize,
    pub(crate) heartbeats: Arc<Heartbeats>,
    pub(crate) waits: Waits,
    pub(crate) afterwards: Afterwards,
    pub(crate) away: Away,
    pub(crate) counters: Counters,
    pub(crate) busy: Busy,
    pub(crate) sites: Sites,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("namespace", &self.namespace)
            .field("defaults", &self.defaults)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl Core {
    /// The store had lost a record, and an owner's word wrote it anew.
    pub(crate) fn count_record_lost(&self, key: &StoreKey) {
        Counters::add(&self.counters.record_lost);
        tracing::error!(?key, "the store had lost a record; it was written anew");
    }

    /// Why `result` is not stored, if it is too large for that.
    pub(crate) fn too_large(&self, result: &[u8]) -> Option<String> {
        let (bytes, limit) = (result.len(), self.max_result_bytes);
        (bytes > limit).then(|| format!("it takes {bytes} bytes, the limit is {limit}"))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.heartbeats.end();
    }
}

/// Events that an operator should see; each is also an event of `tracing`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) record_lost: AtomicU64,
    pub(crate) unguarded: AtomicU64,
    pub(crate) unconfirmed: AtomicU64,
    pub(crate) lease_lost: AtomicU64,
    pub(crate) result_not_stored: AtomicU64,
}

/// What happened since the engine was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// The store had lost the record of a live attempt; it was written anew.
    pub record_lost: u64,
    /// Bodies that ran without a guard, because the store gave no answer.
    pub unguarded: u64,
    /// Ends of attempts that their callers heard of before the store confirmed them: results, errors,
    /// panics, and a `recover` that could not tell.
    pub unconfirmed: u64,
    /// Attempts that lost their lease.
    pub lease_lost: u64,
    /// Successes whose result could not be stored.
    pub result_not_stored: u64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            record_lost: read(&self.record_lost),
            unguarded: read(&self.unguarded),
            unconfirmed: read(&self.unconfirmed),
            lease_lost: read(&self.lease_lost),
            result_not_stored: read(&self.result_not_stored),
        }
    }
}

/// How much is under way: calls, attempts, and work that goes on after them.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    count: AtomicUsize,
    idle: Signal,
    /// How many drains have lost their patience.
    impatient: AtomicUsize,
}

impl Busy {
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until nothing is under way.
    pub(crate) async fn until_idle(&self) {
        self.idle.until(|| self.count() == 0).await;
    }

    /// A number that changes when a drain loses its patience: who waited then has to leave.
    pub(crate) fn impatient(&self) -> usize {
        self.impatient.load(Ordering::SeqCst)
    }

    pub(crate) fn lose_patience(&self) {
        self.impatient.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts as under way until it is dropped.
#[derive(Debug)]
pub(crate) struct BusyToken(Arc<Core>);

impl BusyToken {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        core.busy.count.fetch_add(1, Ordering::SeqCst);
        Self(core.clone())
    }
}

impl Drop for BusyToken {
    fn drop(&mut self) {
        if self.0.busy.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.busy.idle.say();
        }
    }
}

/// One annotated function: the owner of its prefix. Compared by value, since a generic function
/// or a linked copy of a crate may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    prefix: &'static str,
    module: &'static str,
    function: &'static str,
    line: u32,
}

impl Site {
    /// The function `function` in `module`, annotated at `line`.
    #[must_use]
    pub const fn new(
        prefix: &'static str,
        module: &'static str,
        function: &'static str,
        line: u32,
    ) -> Self {
        Self {
            prefix,
            module,
            function,
            line,
        }
    }

    /// The business type.
    #[must_use]
    pub const fn prefix(&self) -> &'static str {
        self.prefix
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{} (line {})", self.module, self.function, self.line)
    }
}

/// Which function has which prefix.
#[derive(Debug, Default)]
pub(crate) struct Sites(RwLock<HashMap<&'static str, Site>>);

impl Sites {
    /// Lets the first function of a prefix have it, and refuses every other.
    pub(crate) fn check(&self, site: &Site) -> Result<(), Error> {
        let known = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(site.prefix)
            .copied();
        let first = known.unwrap_or_else(|| {
            let mut sites = self.0.write().unwrap_or_else(PoisonError::into_inner);
            *sites.entry(site.prefix).or_insert(*site)
        });
        if first == *site {
            return Ok(());
        }
        Err(Error::PrefixConflict {
            prefix: site.prefix.into(),
            first: first.to_string(),
            second: site.to_string(),
        })
    }
}
