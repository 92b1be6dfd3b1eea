//! The engine: admission, execution, and what goes on behind a call.
//!
//! A call is admitted (`admit`: claim, `decide`, perhaps `wait` and claim again), then its body
//! runs (`run`) and its record is settled. A `guard` owns the attempt in between: dropped at any
//! moment, it tells the store what that moment means, and `afterwards` goes on with it. What
//! outlives a call runs on the driver, one thread of the process. No concrete store is named here
//! but where an engine is made; no store knows a policy.

pub(crate) mod admit;
mod afterwards;
pub(crate) mod ask;
mod away;
mod builder;
mod clock;
pub(crate) mod core;
pub(crate) mod decide;
pub(crate) mod guard;
mod heartbeat;
mod operate;
mod record_view;
mod records;
pub(crate) mod run;
pub(crate) mod signal;
mod tokens;
mod wait;

pub use builder::Builder;
pub use core::{Counts, Site};
pub use operate::{Changes, Done, Forget, NotDone, Refuse, Resolve, Verdict};
pub use record_view::{RecordView, Running};
pub use records::Records;
pub use run::Recovered;
pub use tokens::Tokens;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use once_cell::sync::OnceCell;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::admit::{Admission, Request};
use self::core::Core;
use self::run::Admitted;
use crate::driver;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::observe::{self, Outcome};
use crate::policy::{OnMissingKey, Policy, invalid};
use crate::record::Subject;
use crate::results::Results;
use crate::store::{Finding, MemoryStore, Store};

static INSTALLED: OnceCell<Idempotency> = OnceCell::new();

tokio::task_local! {
    static SCOPED: Idempotency;
}

/// An engine: a store, a namespace and defaults.
///
/// Clones are cheap and share everything. Building one needs no runtime, and it belongs to none:
/// it may be used from many, one after the other or at once.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), idem_core::Error> {
/// use idem_core::{Idempotency, Key, Policy};
///
/// let idem = Idempotency::memory();
/// let pay = || idem.run(Key::new("order:pay", "A-1").unwrap(), Policy::new(), async || {
///     Ok::<_, idem_core::Error>("receipt 1".to_string())
/// });
/// assert_eq!(pay().await?, "receipt 1");
/// assert_eq!(pay().await?, "receipt 1"); // replayed
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Idempotency {
    pub(crate) core: Arc<Core>,
}

/// Which record a call is about.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) key: Key,
    /// Set for a one-time token: who presents it.
    pub(crate) subject: Option<Subject>,
}

impl From<Key> for Target {
    fn from(key: Key) -> Self {
        Self { key, subject: None }
    }
}

impl AsRef<Self> for Idempotency {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Idempotency {
    /// An engine over records in this process: for development, tests, and services that are one
    /// process by design. It has room for a million records and refuses new requests beyond that:
    /// 12 a second, kept for 24 h. [`MemoryStore::capacity`] gives another bound.
    #[must_use]
    pub fn memory() -> Self {
        Builder::new(MemoryStore::new()).finish()
    }

    /// An engine over records in Redis or Valkey: `redis://host` for a server, several such URLs
    /// parted by commas for a cluster, `redis+sentinel://host,host/group` for what Sentinels watch;
    /// `rediss` in place of `redis` with the feature `tls`. For options build a
    /// [`RedisStore`](crate::store::RedisStore) and hand it to [`builder`](Self::builder).
    ///
    /// # Errors
    /// [`Error::Store`] if the server can not be reached, refuses the user, or is too old.
    #[cfg(feature = "redis")]
    pub async fn redis(url: &str) -> Result<Self, Error> {
        let store = crate::store::RedisStore::connect(url).await?;
        Ok(Builder::new(store).finish())
    }

    /// An engine over `store`, with options.
    pub fn builder(store: impl Store) -> Builder {
        Builder::new(store)
    }

    /// Makes this the engine of every annotated function that names none.
    ///
    /// # Examples
    /// ```
    /// use idem_core::{Error, Idempotency};
    ///
    /// assert!(matches!(Idempotency::current(), Err(Error::NotInstalled)));
    /// let first = Idempotency::builder(idem_core::MemoryStore::new()).namespace("shop").build()?;
    /// first.install()?;
    /// let second = Idempotency::memory().install();
    /// assert!(matches!(second, Err(Error::InvalidPolicy { .. })));
    /// assert_eq!(Idempotency::current()?.namespace(), "shop");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidPolicy`] if one was installed before; that one stays.
    pub fn install(&self) -> Result<(), Error> {
        INSTALLED.set(self.clone()).map_err(|_| {
            invalid("an engine is installed already; install one per process, or use `scope`")
        })
    }

    /// The engine for the running task: the innermost [`scope`](Self::scope), or the installed one.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] without either.
    pub fn current() -> Result<Self, Error> {
        SCOPED
            .try_with(Clone::clone)
            .ok()
            .or_else(|| INSTALLED.get().cloned())
            .ok_or(Error::NotInstalled)
    }

    /// Runs `future` with this as the engine of every annotated function in it: for tests. Tasks
    /// that it spawns do not see it, but for those of `detach = true`.
    // Not an `async fn`, which would hold `future` twice.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        SCOPED.scope(self.clone(), future)
    }

    /// `future` for another task, with the engine of the scope in which this is called.
    pub(crate) fn keep_scope<F: Future>(future: F) -> impl Future<Output = F::Output> {
        let scoped = SCOPED.try_with(Clone::clone).ok();
        async move {
            match scoped {
                Some(idem) => idem.scope(future).await,
                None => future.await,
            }
        }
    }

    /// Runs `body` once for `key`, and gives its result to every caller with that key: the form
    /// for programs of what `#[idempotent]` writes.
    ///
    /// # Errors
    /// What the body returns, and [`Error`] as `E` wherever the guard does not let it run.
    ///
    /// # Cancel safety
    /// Dropped before the body began, nothing happened. Dropped in the body, the record is
    /// abandoned: see [`on_abandoned`](Policy::hold_abandoned). Dropped while settling, the settle
    /// goes on in the background.
    ///
    /// # Concurrent calls on the same key
    /// One runs; the others get [`Error::InProgress`], or wait where the policy says so.
    pub async fn run<T, E, F>(
        &self,
        key: Key,
        policy: Policy,
        body: impl FnOnce() -> F,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        self.run_with(key, policy, Results::stored(), None, body)
            .await
    }

    /// [`run`](Self::run) with a say in how results travel, and a hash of the payload that has to
    /// be equal for one key.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn run_with<T, E, F>(
        &self,
        key: Key,
        policy: Policy,
        results: Results<T, E>,
        fingerprint: Option<Fingerprint>,
        body: impl FnOnce() -> F,
    ) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        self.run_target(Ok(key.into()), policy, results, fingerprint, body)
            .await
    }

    async fn run_target<T, E, F>(
        &self,
        target: Result<Target, Error>,
        policy: Policy,
        results: Results<T, E>,
        fingerprint: Option<Fingerprint>,
        body: impl FnOnce() -> F,
    ) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        if policy.recovers() {
            observe::report(Outcome::Refused);
            return Err(E::from(invalid(
                "`run` has no one to ask what an attempt that died has done; use `recover` in the attribute, or `resolve`",
            )));
        }
        match self.admit(target, policy, results, fingerprint).await {
            // What the closure does before its first await is the body, too: it is called under
            // the guard.
            Ok(admitted) => {
                let body = Box::pin(async move { body().await });
                admitted.execute(results, body).await
            }
            Err(answer) => answer,
        }
    }

    /// Asks whether the body may run; `Err` is the caller's answer if not.
    pub(crate) async fn admit<T, E>(
        &self,
        target: Result<Target, Error>,
        policy: Policy,
        results: Results<T, E>,
        fingerprint: Option<Fingerprint>,
    ) -> Result<Admitted, Result<T, E>> {
        let request = match self.request(target, policy, fingerprint) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(Admitted::Keyless),
            Err(error) => return Err(Err(results.refused(error))),
        };
        match request.admit().await {
            Ok(Admission::Run(guard)) => Ok(Admitted::Guarded(guard)),
            Ok(Admission::Unguarded(guard)) => Ok(Admitted::Unguarded(guard)),
            Ok(Admission::Replay { result, waited }) => {
                Err(request.replay(results, results.decode(&result), waited))
            }
            Ok(Admission::ReplayError { error, waited }) => {
                Err(request.replay_error(results, results.decode_error(&error), waited))
            }
            Err(error) => Err(Err(results.refused(error))),
        }
    }

    /// The request with nothing left open; `None` if it has no key and may run without.
    pub(crate) fn request(
        &self,
        target: Result<Target, Error>,
        policy: Policy,
        fingerprint: Option<Fingerprint>,
    ) -> Result<Option<Request<'_>>, Error> {
        let core = &self.core;
        let Target { key, subject } = match target {
            Ok(target) if target.key.is_lock() => {
                return Err(Error::InvalidKey {
                    reason: "this is the key of a lock; use the key that was locked".into(),
                });
            }
            Ok(target) => target,
            Err(Error::MissingKey { .. })
                if policy.missing_key(&core.defaults) == OnMissingKey::Run =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Ok(Some(Request {
            core,
            key: if core.hash_keys { key.hashed() } else { key },
            subject,
            fingerprint,
            settings: policy.settings(&core.defaults, &core.times)?,
        }))
    }

    /// Refuses a second function with the prefix of a first.
    pub(crate) fn check_site(&self, site: &Site) -> Result<(), Error> {
        self.core.sites.check(site)
    }

    /// What an operator should know happened since the engine was built.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.core.counters.read()
    }

    /// The namespace before every key.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.core.namespace
    }

    /// Reports a store set-up in which records can vanish or answers can lie; empty if all is well.
    ///
    /// # Errors
    /// [`Error::Store`] if the store gave no answer.
    pub async fn check(&self) -> Result<Vec<Finding>, Error> {
        Ok(self.core.within_limit(self.core.store.check()).await?)
    }

    /// Refuses to go on with a store on which [`check`](Self::check) finds something.
    ///
    /// # Errors
    /// [`Error::InvalidPolicy`] naming each finding; [`Error::Store`] if there was no answer.
    pub async fn strict(self) -> Result<Self, Error> {
        let findings = self.check().await?;
        if findings.is_empty() {
            return Ok(self);
        }
        let details: Vec<_> = findings.into_iter().map(|finding| finding.detail).collect();
        Err(invalid(format!(
            "the store is not set up to be relied on: {}",
            details.join("; ")
        )))
    }

    /// For the end of a process: waits until no call, no attempt and no settle is under way, at most
    /// `timeout`; then lets nobody wait any longer for somebody else's attempt (they get
    /// [`Error::InProgress`]), stops the bodies that still run, and lets their records say so. Stop
    /// taking new requests first. Returns how many attempts had to be stopped.
    ///
    /// It goes on for twice the engine's limit of a store call, and no longer: a warning says how much
    /// is under way then, such as settles that the store has not answered. Their keys stay taken until
    /// their leases end, and at hold until somebody says what happened.
    ///
    /// Only a body that holds a record by a lease can be stopped. One in transaction mode and one that
    /// runs unguarded are waited for no longer than a little over `timeout`, and go on; one without a
    /// key is not even waited for.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn drain(&self, timeout: Duration) -> usize {
        let busy = &self.core.busy;
        let _ = driver::by(driver::moment_in(timeout), busy.until_idle()).await;
        // First: whoever waits for a body that is stopped could be granted its record.
        busy.lose_patience();
        self.core.waits.tell_all();
        let told = Instant::now() + self.core.times.limit * 2;
        let mut stopped = 0;
        loop {
            // Again: a claim that was under way may have been granted.
            stopped += self.core.heartbeats.stop_bodies();
            let under_way = busy.count();
            let next = Instant::now() + Duration::from_millis(10);
            if under_way == 0 {
                return stopped;
            }
            if next > told || driver::sleep_until(next).await.is_err() {
                tracing::warn!(under_way, "a drain is over, and calls or settles are not");
                return stopped;
            }
        }
    }
}
