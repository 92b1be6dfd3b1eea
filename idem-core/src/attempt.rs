//! One run of a body, as the body sees it.

mod lease;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use self::lease::Lease;
pub(crate) use self::lease::Renewing;
use crate::engine::ask::{Unanswered, late};
use crate::engine::core::Core;
use crate::engine::signal::Signal;
use crate::error::{Context, Error};
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::policy::Settings;
use crate::record::{Fence, Grant, Owner, RenewReply, StoreTime};
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
    settled_in: AtomicBool,
    signal: Signal,
}

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
            settled_in: AtomicBool::new(false),
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
    /// to, before anything is read there, and let that refuse a smaller one: see
    /// [locks](crate::lock).
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
    ///
    /// Many providers keep a refusal too, and give it again for the same key, also where another
    /// card would pay. So put what makes it another charge into the purpose: the card, or a number
    /// that the client makes anew after a refusal. Never [`number`](Self::number) or
    /// [`fence`](Self::fence): they change also where an attempt died and may have charged.
    ///
    /// It is made of the key as the store has it, with the namespace and in its
    /// [hashed](crate::engine::Builder::hash_keys) form: where one of these changes, it does, too. A
    /// body that runs without a guard has no attempt and no such key. Where that is allowed
    /// (`on_store_error = "run"`), make the provider's key of the request alone, in guarded calls as
    /// well.
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
            // The answer may have waited here for as long as the lease, in a process that was stopped.
            RenewReply::Renewed { .. } if !self.came_too_late() => Ok(()),
            RenewReply::Renewed { .. } | RenewReply::Lost => Err(Error::LeaseLost { context }),
            RenewReply::Damaged => Err(Error::Damaged { context }),
            RenewReply::Late => Err(late().into()),
        }
    }

    /// Returns when the record is no longer surely this attempt's: it was lost, or the attempt has
    /// ended, whatever its body has left running.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn lost(&self) {
        self.0.signal.until(|| self.is_lost()).await;
    }

    /// Whether [`lost`](Self::lost) has fired.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::SeqCst) || self.0.ended.load(Ordering::SeqCst)
    }

    /// Whether its record is in the transaction of its caller.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.0.in_transaction
    }

    /// Its success went into a transaction of its body.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn note_settled_in(&self) {
        self.0.settled_in.store(true, Ordering::SeqCst);
    }

    /// Whether its success went into a transaction of its body.
    pub(crate) fn is_settled_in(&self) -> bool {
        self.0.settled_in.load(Ordering::SeqCst)
    }

    pub(crate) fn context(&self) -> Context {
        Context::new(self.0.key.clone(), self.0.settings.message)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
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
