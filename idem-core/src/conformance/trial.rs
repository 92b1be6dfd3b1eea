//! One run of one law: a store, keys of its own, and the history for when it fails.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Harness;
use super::caller::Caller;
use crate::error::StoreError;
use crate::key::{Key, KeyPart};
use crate::record::{
    Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Owner, Record, Refuse,
    RefuseReply, Renew, RenewReply, Resolve, Settle, SettleReply, Slot, State, Status, StoreTime,
    Terms,
};
use crate::store::{Answer, Store, StoreKey};

/// Why a law ended without a verdict.
#[derive(Debug)]
pub(super) enum Stop {
    /// The calls took longer than the lease that they should have fitted in.
    TooSlow,
    /// No answer.
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// How a law ends when it did not panic.
pub(super) type Tried = Result<(), Stop>;

pub(super) struct Trial<'a, H: Harness> {
    law: &'static str,
    harness: &'a H,
    pub(super) store: Arc<H::Store>,
    /// See [`Harness::pace`].
    pub(super) pace: Duration,
    run: u64,
    made: AtomicU32,
    heard: Mutex<(StoreTime, Instant)>,
    history: Mutex<String>,
}

impl<'a, H: Harness> Trial<'a, H> {
    pub(super) async fn new(law: &'static str, harness: &'a H, pace: Duration) -> Self {
        let trial = Self {
            law,
            harness,
            store: Arc::new(harness.fresh_store().await),
            pace,
            run: fastrand::u64(..),
            made: AtomicU32::new(0),
            heard: Mutex::new((StoreTime::default(), Instant::now())),
            history: Mutex::new(String::new()),
        };
        if let Err(error) = trial.now().await {
            panic!("{law}: the store does not say its time: {error:?}");
        }
        trial
    }

    fn next(&self) -> u32 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// A key that nobody has used.
    pub(super) fn key(&self) -> StoreKey {
        key(self.run, self.next())
    }

    /// What the texts of all keys of this trial begin with.
    pub(super) fn keys_begin_with(&self) -> String {
        let all = key(self.run, 0);
        all.as_str().trim_end_matches('0').to_owned()
    }

    /// A key that nobody has used, of a type that only this trial has.
    pub(super) fn key_of_type(&self, kind: &str) -> StoreKey {
        made_of(&format!("law.{:016x}.{kind}", self.run), self.next())
    }

    /// What the texts of all keys of these types begin with.
    pub(super) fn types_begin_with(&self) -> String {
        format!("{NAMESPACE}:law.{:016x}.", self.run)
    }

    /// An owner that nobody has used.
    pub(super) fn owner(&self) -> Owner {
        let mut bytes = [1; 16];
        bytes[..8].copy_from_slice(&self.run.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.next().to_be_bytes());
        Owner::from_bytes(bytes)
    }

    /// A caller with a new owner and long terms, at hold, whose claim is its checkpoint.
    pub(super) fn caller<'t>(&'t self, key: &StoreKey) -> Caller<'t, 'a, H> {
        Caller::new(self, key)
    }

    /// Terms that no law waits for.
    #[expect(clippy::unused_self, reason = "it reads like its siblings")]
    pub(super) fn long(&self) -> Terms {
        Terms {
            lease: Duration::from_mins(1),
            expire: Duration::from_mins(10),
            doubt: Duration::from_hours(24 * 7),
            limit: Duration::from_secs(5),
        }
    }

    /// Long terms with a lease that a law waits for.
    pub(super) fn short_lease(&self) -> Terms {
        Terms {
            lease: self.pace,
            ..self.long()
        }
    }

    /// Terms of which every one is waited for, the retention for longer than the lease.
    pub(super) fn short(&self) -> Terms {
        Terms {
            lease: self.pace,
            expire: self.pace * 2,
            doubt: self.pace * 4,
            limit: self.pace,
        }
    }

    /// The time of the store's last answer.
    pub(super) fn heard(&self) -> StoreTime {
        lock(&self.heard).0
    }

    /// A `not_after` as an engine computes it.
    pub(super) fn within(&self, limit: Duration) -> StoreTime {
        let (heard, at) = *lock(&self.heard);
        heard.after(at.elapsed()).after(limit)
    }

    /// The law goes on only if the store's last answer came before `deadline`.
    pub(super) fn in_time_for(&self, deadline: StoreTime) -> Tried {
        if deadline.has_passed(self.heard()) {
            Err(Stop::TooSlow)
        } else {
            Ok(())
        }
    }

    pub(super) async fn now(&self) -> Result<StoreTime, Stop> {
        let now = self.store.now().await?;
        self.hear(now);
        Ok(now)
    }

    fn hear(&self, now: StoreTime) {
        *lock(&self.heard) = (now, Instant::now());
    }

    /// Lets time pass until the store's clock is well behind `moment`: by more than the
    /// millisecond in which a server expires its keys.
    pub(super) async fn until_past(&self, moment: StoreTime) -> Tried {
        let goal = moment.after(Duration::from_millis(5));
        loop {
            let now = self.now().await?;
            if goal.has_passed(now) {
                return Ok(());
            }
            self.harness.pass_time(goal.since(now)).await;
        }
    }

    /// What everybody sees at `key`.
    pub(super) async fn peek(&self, key: &StoreKey) -> Result<Slot, Stop> {
        let Answer { now, reply } = self.store.peek(key).await?;
        self.hear(now);
        self.note(key, "peek", &reply, now);
        Ok(reply)
    }

    /// The record that everybody sees at `key`.
    pub(super) async fn record(&self, key: &StoreKey) -> Result<Record, Stop> {
        match self.peek(key).await? {
            Slot::Record(record) => Ok(record),
            other => panic!(
                "{}: a record was expected at {key:?}, not {other:?}",
                self.law
            ),
        }
    }

    /// The status that everybody sees at `key`; `None` if nothing is there.
    pub(super) async fn status(&self, key: &StoreKey) -> Result<Option<Status>, Stop> {
        Ok(match self.peek(key).await? {
            Slot::Absent => None,
            Slot::Damaged => Some(Status::Damaged),
            Slot::Record(Record { state, .. }) => {
                assert!(
                    !matches!(state, State::Closed { .. }),
                    "{}: a closed mark was shown",
                    self.law
                );
                state.status()
            }
        })
    }

    pub(super) async fn corrupt(&self, key: &StoreKey) -> bool {
        let is_damaged = self.harness.corrupt(&self.store, key).await;
        self.note(key, "corrupt", &is_damaged, self.heard());
        is_damaged
    }

    pub(super) async fn time_to_live(&self, key: &StoreKey) -> Option<Duration> {
        self.harness.time_to_live(&self.store, key).await
    }

    pub(super) fn pushes(&self) -> bool {
        self.harness.pushes()
    }

    fn note(&self, key: &StoreKey, sent: impl Debug, reply: &dyn Debug, now: StoreTime) {
        let mut history = lock(&self.history);
        // Writing to a string can not fail.
        let _ = writeln!(
            history,
            "{} {}: {sent:?}\n    -> {reply:?}",
            now.as_micros(),
            key.as_str()
        );
    }
}

macro_rules! verbs {
    ($($verb:ident($op:ty) -> $reply:ty;)*) => {
        /// The store's verbs, with a history.
        impl<H: Harness> Trial<'_, H> {
            $(
                pub(super) async fn $verb(
                    &self,
                    key: &StoreKey,
                    op: &$op,
                ) -> Result<$reply, Stop> {
                    let Answer { now, reply } = self.store.$verb(key, op).await?;
                    self.hear(now);
                    self.note(key, op, &reply, now);
                    Ok(reply)
                }
            )*
        }
    };
}

verbs! {
    claim(Claim) -> ClaimReply;
    renew(Renew) -> RenewReply;
    settle(Settle) -> SettleReply;
    issue(Issue) -> IssueReply;
    refuse(Refuse) -> RefuseReply;
    forget(Forget) -> OperatorReply;
    resolve(Resolve) -> OperatorReply;
}

impl<H: Harness> Drop for Trial<'_, H> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the law {} was broken by this history (time in µs, key, operation, reply):\n{}",
                self.law,
                lock(&self.history)
            );
        }
    }
}

/// A key of a random history.
pub(super) fn differential_key(run: u64, number: usize) -> StoreKey {
    key(run, u32::try_from(number).unwrap_or(u32::MAX))
}

const NAMESPACE: &str = "conformance";

fn key(run: u64, number: u32) -> StoreKey {
    made_of("law", format!("{run:016x}.{number}"))
}

fn made_of(prefix: &str, parts: impl KeyPart) -> StoreKey {
    let key = Key::new(prefix, parts);
    match key.and_then(|key| StoreKey::new(NAMESPACE, &key)) {
        Ok(key) => key,
        Err(error) => panic!("the suite made a key that can not be used: {error}"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
