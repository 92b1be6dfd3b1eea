//! One run of a body, as the body sees it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::ask::{Asked, Unanswered, late};
use crate::engine::core::{Core, Counters};
use crate::engine::signal::Signal;
use crate::error::{Context, Error};
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::policy::Settings;
use crate::record::{
    Echo, Fence, Grant, OnAbandoned, Outcome, Owner, Renew, RenewReply, Settle, StoreTime,
};
use crate::store::StoreKey;

tokio::task_local! {
    /// `None` in a body that nobody guards, also inside one that somebody does.
    static CURRENT: Option<Attempt>;
}

/// One run of a body: its key, its fence, and whether it still owns its record.
///
/// Clones are cheap and name the same attempt; they can go into spawned tasks.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), idem_core::Error> {
/// use idem_core::{Attempt, Idempotency, Key, Policy};
///
/// let idem = Idempotency::memory();
/// let key = Key::new("order:pay", "A-1")?;
/// let number = idem
///     .run(key, Policy::new(), async || {
///         let attempt = Attempt::current().expect("this body is guarded");
///         Ok::<_, idem_core::Error>(attempt.number())
///     })
///     .await?;
/// assert_eq!(number, 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Attempt(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) core: Arc<Core>,
    pub(crate) key: Key,
    pub(crate) store_key: StoreKey,
    pub(crate) owner: Owner,
    pub(crate) settings: Settings,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) grant: Grant,
    in_transaction: bool,
    /// How many renewals are under way.
    renewals: AtomicUsize,
    lease: Mutex<Lease>,
    stop: AtomicBool,
    lost: AtomicBool,
    ended: AtomicBool,
    signal: Signal,
}

/// What the owner knows of its record.
#[derive(Debug, Clone, Copy)]
struct Lease {
    /// The store's time in the last answer.
    answered: StoreTime,
    /// When the request of that answer was sent: the lease counts from here.
    sent: Instant,
    checkpoint: bool,
}

/// The part of a lease after which a silent attempt counts itself lost.
const SAFE_PART: f64 = 0.8;

/// Between two heartbeats of one attempt: a lease too short to be kept does not keep the one
/// background thread from everybody else.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl Attempt {
    pub(crate) fn granted(
        core: Arc<Core>,
        keys: (Key, StoreKey),
        owner: Owner,
        settings: Settings,
        fingerprint: Option<Fingerprint>,
        granted: (Grant, StoreTime, Instant),
    ) -> Self {
        Self::new(core, keys, owner, settings, fingerprint, granted, false)
    }

    /// An attempt whose record lives and dies with the transaction of its caller.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn in_transaction(
        core: Arc<Core>,
        keys: (Key, StoreKey),
        owner: Owner,
        settings: Settings,
        fingerprint: Option<Fingerprint>,
        granted: (Grant, StoreTime, Instant),
    ) -> Self {
        Self::new(core, keys, owner, settings, fingerprint, granted, true)
    }

    fn new(
        core: Arc<Core>,
        (key, store_key): (Key, StoreKey),
        owner: Owner,
        settings: Settings,
        fingerprint: Option<Fingerprint>,
        (grant, answered, sent): (Grant, StoreTime, Instant),
        in_transaction: bool,
    ) -> Self {
        let recovers = grant.doubt && settings.recover;
        let checkpoint = !settings.own_checkpoint || recovers;
        Self(Arc::new(Inner {
            core,
            key,
            store_key,
            owner,
            settings,
            fingerprint,
            grant,
            in_transaction,
            renewals: AtomicUsize::new(0),
            lease: Mutex::new(Lease {
                answered,
                sent,
                checkpoint,
            }),
            stop: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            signal: Signal::default(),
        }))
    }

    /// The attempt whose body is being polled; `None` outside a guarded body, and in one that runs
    /// without a guard. In a task that the body spawns, use a clone.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok().flatten()
    }

    /// Whether it follows an attempt that died after its checkpoint.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.0.grant.doubt
    }

    /// Runs `future` with `self` as the current attempt.
    pub(crate) async fn scope<F: Future>(&self, future: F) -> F::Output {
        CURRENT.scope(Some(self.clone()), future).await
    }

    /// Runs `future` without a current attempt.
    pub(crate) async fn scope_of_none<F: Future>(future: F) -> F::Output {
        CURRENT.scope(None, future).await
    }

    /// The key it runs for, without a namespace.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.0.key
    }

    /// Higher than the fence of every attempt on this key before. Hand it to what the body writes
    /// to, and let that refuse a smaller one.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.0.grant.fence
    }

    /// Which attempt on this record it is, from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.grant.number
    }

    /// Whether it follows an attempt that died without saying how it ended.
    #[must_use]
    pub fn is_takeover(&self) -> bool {
        self.0.grant.takeover
    }

    /// A key for a provider that dedups by itself: the same in each retry of the same request, and
    /// another for each `purpose`. 32 lower-case hex digits.
    #[must_use]
    pub fn derive_key(&self, purpose: &str) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("idem 2026-11-29 key for a provider");
        hasher.update(self.0.store_key.as_str().as_bytes());
        // No key holds a NUL, so that key and purpose can not run into one another.
        hasher.update(&[0]);
        hasher.update(purpose.as_bytes());
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Marks that effects begin now. Call it once, before the first of them, in a function with
    /// `checkpoint = true`; elsewhere it only asks whether the record is still owned. In a
    /// function with `tx` it does nothing: there effects and record are one transaction.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if the record is no longer this attempt's: leave without any effect.
    /// [`Error::Store`] if the store gave no answer: leave without any effect, too.
    ///
    /// # Cancel safety
    /// Dropped, it leaves open whether the mark was set.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        if self.0.in_transaction {
            return Ok(());
        }
        let mut renew = self.renewal(true);
        let asked = self
            .0
            .core
            .ask(&self.0.store_key, &mut renew, &Unanswered::default())
            .await?;
        self.hear_renewal(&asked, true);
        let context = self.context();
        match asked.reply {
            RenewReply::Renewed { .. } if !self.is_lost() => Ok(()),
            RenewReply::Renewed { .. } | RenewReply::Lost => Err(Error::LeaseLost { context }),
            RenewReply::Damaged => Err(Error::Damaged { context }),
            RenewReply::Late => Err(late().into()),
        }
    }

    /// Returns when the record is no longer surely this attempt's.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn lost(&self) {
        self.0.signal.until(|| self.is_lost()).await;
    }

    /// Whether [`lost`](Self::lost) has fired.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::SeqCst)
    }

    /// Whether [`lose`](Self::lose) has yet to be said. Not of an attempt that has ended: its lease
    /// may run out while it is being settled, and the answer to a heartbeat that was under way then
    /// says nothing.
    pub(crate) fn can_be_lost(&self) -> bool {
        !self.is_lost() && !self.0.ended.load(Ordering::SeqCst)
    }

    /// Returns when the body has to go: the record was lost and somebody else may get it.
    pub(crate) async fn must_stop(&self) {
        let is_told = || self.0.stop.load(Ordering::SeqCst);
        self.0.signal.until(is_told).await;
    }

    /// Counts the record as lost. At hold, past the checkpoint, nobody else can get the key, so
    /// the body may finish, and under a lock it decides itself; otherwise it has to go.
    pub(crate) fn lose(&self) {
        if !self.can_be_lost() || self.0.lost.swap(true, Ordering::SeqCst) {
            return;
        }
        Counters::add(&self.0.core.counters.lease_lost);
        tracing::error!(key = ?self.0.store_key, "an attempt lost its lease");
        let settings = &self.0.settings;
        let nobody_else_can_have_it = settings.on_abandoned == OnAbandoned::Hold
            && self.lease().checkpoint
            && !settings.recover;
        if !nobody_else_can_have_it && !self.0.key.is_lock() {
            self.0.stop.store(true, Ordering::SeqCst);
        }
        self.0.signal.say();
    }

    /// Whether its record is in the transaction of its caller.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.0.in_transaction
    }

    /// A renewal is under way until what this gives is dropped.
    pub(crate) fn renewing(&self) -> Renewing {
        self.0.renewals.fetch_add(1, Ordering::SeqCst);
        Renewing(self.clone())
    }

    /// Returns when no renewal is under way.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) async fn no_renewal(&self) {
        let is_none = || self.0.renewals.load(Ordering::SeqCst) == 0;
        self.0.signal.until(is_none).await;
    }

    /// Ends the body, whatever the policy says: the process goes down. `false` if it has ended, or
    /// has been told.
    pub(crate) fn stop(&self) -> bool {
        if self.0.ended.load(Ordering::SeqCst) || self.0.stop.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.0.lost.store(true, Ordering::SeqCst);
        self.0.signal.say();
        true
    }

    /// The body has ended; what becomes of its lease does not matter any more.
    pub(crate) fn end(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
    }

    /// After this moment a silent attempt counts itself lost.
    pub(crate) fn safe_until(&self) -> Instant {
        self.lease().sent + self.0.settings.terms.lease.mul_f64(SAFE_PART)
    }

    /// Counts the record as lost if its lease has run out unheard, also where the background thread
    /// has not noticed yet, as in a process that was stopped for a while.
    pub(crate) fn lose_if_late(&self) {
        if self.safe_until() <= Instant::now() {
            self.lose();
        }
    }

    /// Whether it was lost before its body began: its claim was heard, or its task polled, too
    /// late. Also at hold: nothing has begun, so that to leave costs nothing, and an operator may
    /// have forgotten the record meanwhile and let another attempt run.
    pub(crate) fn came_too_late(&self) -> bool {
        self.lose_if_late();
        self.is_lost()
    }

    /// When the next heartbeat is due.
    pub(crate) fn renew_at(&self) -> Instant {
        self.lease().sent + (self.0.settings.terms.lease / 3).max(SHORTEST_PAUSE)
    }

    /// How long to wait before a heartbeat that got no answer is repeated.
    pub(crate) fn retry_pause(&self) -> Duration {
        (self.0.settings.terms.lease / 10).max(SHORTEST_PAUSE)
    }

    pub(crate) fn renewal(&self, checkpoint: bool) -> Renew {
        Renew {
            owner: self.0.owner,
            terms: self.0.settings.terms,
            checkpoint,
            not_after: StoreTime::default(),
            echo: self.echo(),
        }
    }

    pub(crate) fn settlement(&self, outcome: Outcome) -> Settle {
        Settle {
            owner: self.0.owner,
            terms: self.0.settings.terms,
            outcome,
            not_after: StoreTime::default(),
            echo: Some(self.echo()),
        }
    }

    /// Takes over what a renewal was answered.
    pub(crate) fn hear_renewal(&self, asked: &Asked<RenewReply>, checkpoint: bool) {
        match asked.reply {
            RenewReply::Renewed { rebuilt } => {
                let mut lease = self.lease();
                lease.answered = lease.answered.max(asked.now);
                lease.sent = lease.sent.max(asked.sent);
                lease.checkpoint |= checkpoint;
                drop(lease);
                if rebuilt {
                    self.count_record_lost();
                }
            }
            RenewReply::Lost | RenewReply::Damaged => self.lose(),
            RenewReply::Late => {}
        }
    }

    pub(crate) fn count_record_lost(&self) {
        self.0.core.count_record_lost(&self.0.store_key);
    }

    pub(crate) fn context(&self) -> Context {
        Context::new(self.0.key.clone(), self.0.settings.message)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    fn echo(&self) -> Echo {
        let lease = *self.lease();
        Echo {
            answered: lease.answered,
            grant: self.0.grant,
            checkpoint: lease.checkpoint,
            policy: self.0.settings.on_abandoned,
            fingerprint: self.0.fingerprint,
        }
    }

    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.0.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A renewal that is under way.
#[derive(Debug)]
pub(crate) struct Renewing(Attempt);

impl Clone for Renewing {
    fn clone(&self) -> Self {
        self.0.renewing()
    }
}

impl Drop for Renewing {
    fn drop(&mut self) {
        if self.0.0.renewals.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.0.signal.say();
        }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("key", &self.0.store_key)
            .field("owner", &self.0.owner)
            .field("grant", &self.0.grant)
            .finish_non_exhaustive()
    }
}
