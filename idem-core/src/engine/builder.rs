//! How an engine is made.

use std::sync::Arc;
use std::time::Duration;

use super::Idempotency;
use super::core::{Busy, Core, Counters, Sites};
use super::heartbeat::Heartbeats;
use super::wait::Waits;
use crate::error::Error;
use crate::policy::{EngineTimes, Policy, invalid, whole_millis};
use crate::store::{ErasedStore, Store, check_namespace};

/// Options of an engine. What a function's own policy says goes before them.
#[must_use]
pub struct Builder {
    store: Box<dyn ErasedStore>,
    namespace: String,
    hash_keys: bool,
    defaults: Policy,
    times: EngineTimes,
    max_result_bytes: usize,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("namespace", &self.namespace)
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new(store: impl Store) -> Self {
        Self {
            store: Box::new(store),
            namespace: "idem".to_owned(),
            hash_keys: false,
            defaults: Policy::new(),
            times: EngineTimes {
                doubt: Duration::from_hours(7 * 24),
                limit: Duration::from_secs(2),
            },
            max_result_bytes: 1024 * 1024,
        }
    }

    /// What stands before every key: 1 to 64 ASCII letters, digits, `_`, `.` and `-`. `idem`
    /// unless said. Two services on one store need two.
    ///
    /// Under another one no record of before is found, and
    /// [`derive_key`](crate::Attempt::derive_key) gives other keys, so that a provider does not know
    /// the request either: retries of what ran before run again. Change it on an empty store.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Stores every key as a hash behind its prefix, so that the store shows no business values.
    /// It changes what [`namespace`](Self::namespace) changes: say it from the beginning.
    pub fn hash_keys(mut self) -> Self {
        self.hash_keys = true;
        self
    }

    /// How long a silent attempt keeps its record, where a function does not say: 30 s unless
    /// said, never more than half of `expire` by itself.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.defaults = self.defaults.lease(lease);
        self
    }

    /// How long a finished record is kept, where a function does not say: 24 h unless said.
    pub fn expire(mut self, expire: Duration) -> Self {
        self.defaults = self.defaults.expire(expire);
        self
    }

    /// How long an outcome is held as unknown, if that is longer than `expire`: 7 days unless said.
    pub fn doubt(mut self, doubt: Duration) -> Self {
        self.times.doubt = doubt;
        self
    }

    /// How long one store call may take, resend included: 2 s unless said. Cut to whole
    /// milliseconds. A store over a network has a limit of its own, which is said there and is not to
    /// be longer: set both, or a store that is about to say that somebody has the record counts as one
    /// that gives no answer.
    pub fn limit(mut self, limit: Duration) -> Self {
        // The stores reckon with whole milliseconds when a claim was sent; a deadline that knows
        // more would make it younger than it is.
        self.times.limit = whole_millis(limit);
        self
    }

    /// The largest encoded result that is stored: 1 MiB unless said. A larger one is given to its
    /// caller; duplicates get [`Error::ResultUnavailable`]. A transaction on MySQL or MariaDB sends it as
    /// text of twice its length: `max_allowed_packet` has to have room for that.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = bytes;
        self
    }

    /// What functions do not say themselves, all at once. Not what belongs to one function:
    /// [`forget`](Policy::forget), [`own_checkpoint`](Policy::own_checkpoint),
    /// [`with_recover`](Policy::with_recover).
    pub fn defaults(mut self, policy: Policy) -> Self {
        self.defaults = policy;
        self
    }

    /// Builds the engine. Needs no runtime and no answer of the store.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] for a bad namespace, [`Error::InvalidPolicy`] for times that
    /// contradict one another or can not be kept.
    pub fn build(self) -> Result<Idempotency, Error> {
        const LIMITS: std::ops::RangeInclusive<Duration> =
            Duration::from_millis(10)..=Duration::from_hours(1);
        check_namespace(&self.namespace)?;
        if !LIMITS.contains(&self.times.limit) {
            return Err(invalid(format!(
                "limit is {:?}; allowed is 10 ms to an hour",
                self.times.limit
            )));
        }
        if self.times.doubt > crate::policy::LONGEST_EXPIRE {
            return Err(invalid(format!(
                "doubt is {:?}; the longest is 30 years",
                self.times.doubt
            )));
        }
        if self.defaults.belongs_to_a_function() {
            return Err(invalid(
                "`forget`, `own_checkpoint` and `recover` belong to a function and can not be defaults of an engine",
            ));
        }
        self.defaults.settings(&Policy::new(), &self.times)?;
        Ok(self.finish())
    }

    pub(super) fn finish(self) -> Idempotency {
        let core = Core {
            store: self.store,
            clock: super::clock::StoreClock::default(),
            namespace: self.namespace,
            hash_keys: self.hash_keys,
            defaults: self.defaults,
            times: self.times,
            max_result_bytes: self.max_result_bytes,
            heartbeats: Arc::<Heartbeats>::default(),
            waits: Waits::default(),
            afterwards: super::afterwards::Afterwards::default(),
            away: super::away::Away::default(),
            counters: Counters::default(),
            busy: Busy::default(),
            sites: Sites::default(),
        };
        Idempotency {
            core: Arc::new(core),
        }
    }
}
