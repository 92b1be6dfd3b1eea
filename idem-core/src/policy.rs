//! The options of one guarded function, and what they come to in one engine.

mod lock;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::error::Error;
use crate::record::{OnAbandoned, Terms};

/// What a duplicate of a finished request is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnDuplicate {
    /// The first run's result.
    #[default]
    Replay,
    /// [`Error::Duplicate`]; no result is stored.
    Reject,
}

/// What a duplicate of a running request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum InProgress {
    /// It gets [`Error::InProgress`].
    #[default]
    Reject,
    /// It waits for the end, as long as [`Policy::wait`] says.
    Wait,
}

/// What an error of the body says about its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnError {
    /// Nothing happened: the record is failed, and a retry runs again.
    #[default]
    Fail,
    /// Nothing happened, and nothing is kept.
    Release,
    /// What happened is not known; see `on_abandoned` and `recover`.
    Abandon,
    /// The answer is final: the error is stored and replayed.
    Replay,
}

/// What happens when the store gives no answer to a claim; one that refuses it has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnStoreError {
    /// [`Error::Store`]; the body does not run.
    #[default]
    Error,
    /// The body runs without a guard; counted and said.
    Run,
}

/// What happens when a part of the key is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnMissingKey {
    /// [`Error::MissingKey`]; the body does not run.
    #[default]
    Error,
    /// The body runs without a guard.
    Run,
}

/// The options of one guarded function. What is not said takes the engine's value.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use idem_core::Policy;
///
/// const PAY: Policy = Policy::new()
///     .expire(Duration::from_hours(7 * 24))
///     .lease(Duration::from_secs(20))
///     .wait_in_progress()
///     .wait(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct Policy {
    expire: Option<Duration>,
    lease: Option<Duration>,
    wait: Option<Duration>,
    on_duplicate: Option<OnDuplicate>,
    in_progress: Option<InProgress>,
    on_abandoned: Option<OnAbandoned>,
    on_store_error: Option<OnStoreError>,
    on_missing_key: Option<OnMissingKey>,
    own_checkpoint: bool,
    forget: bool,
    recover: bool,
    message: Option<&'static str>,
}

/// The shortest lease that may be asked for: below it a short pause of the process loses records.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// The longest retention: about thirty years.
pub const LONGEST_EXPIRE: Duration = Duration::from_hours(30 * 365 * 24);

impl Policy {
    /// Nothing said.
    pub const fn new() -> Self {
        Self {
            expire: None,
            lease: None,
            wait: None,
            on_duplicate: None,
            in_progress: None,
            on_abandoned: None,
            on_store_error: None,
            on_missing_key: None,
            own_checkpoint: false,
            forget: false,
            recover: false,
            message: None,
        }
    }

    /// How long a finished record is kept: from a millisecond to [`LONGEST_EXPIRE`]. Choose it
    /// longer than anything upstream goes on resending.
    ///
    /// A lease that is not said is at most half of it. A round trip to the store has to fit well into
    /// that: an attempt that hears of its grant too late does not run.
    pub const fn expire(mut self, expire: Duration) -> Self {
        self.expire = Some(expire);
        self
    }

    /// How long a silent attempt keeps its record: from [`SHORTEST_LEASE`] to `expire`. It is
    /// renewed while the body runs.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How long a duplicate of a running request waits, if it waits.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Duplicates of a finished request get [`Error::Duplicate`]; no result is stored.
    pub const fn reject_duplicates(mut self) -> Self {
        self.on_duplicate = Some(OnDuplicate::Reject);
        self
    }

    /// Duplicates of a finished request get its result.
    pub const fn replay_duplicates(mut self) -> Self {
        self.on_duplicate = Some(OnDuplicate::Replay);
        self
    }

    /// Duplicates of a running request wait for its end.
    pub const fn wait_in_progress(mut self) -> Self {
        self.in_progress = Some(InProgress::Wait);
        self
    }

    /// Duplicates of a running request get [`Error::InProgress`].
    pub const fn reject_in_progress(mut self) -> Self {
        self.in_progress = Some(InProgress::Reject);
        self
    }

    /// An attempt that died after its checkpoint is run again.
    pub const fn rerun_abandoned(mut self) -> Self {
        self.on_abandoned = Some(OnAbandoned::Rerun);
        self
    }

    /// An attempt that died after its checkpoint is held as unknown.
    pub const fn hold_abandoned(mut self) -> Self {
        self.on_abandoned = Some(OnAbandoned::Hold);
        self
    }

    /// The body marks its own [checkpoint](crate::Attempt::checkpoint); without this the claim is
    /// the checkpoint. A body that forgets it counts as one that did nothing: after a crash, and after
    /// an [`OnError::Abandon`], it is run again whatever it has done.
    pub const fn own_checkpoint(mut self) -> Self {
        self.own_checkpoint = true;
        self
    }

    /// Success leaves nothing behind: only calls that overlap are kept apart, and the next one runs
    /// again, also where [duplicates are rejected](Self::reject_duplicates). A used one-time token
    /// stays used.
    pub const fn forget(mut self) -> Self {
        self.forget = true;
        self
    }

    /// The function can find out what an attempt that died has done. For the attribute: the form
    /// for programs has nobody to ask, and refuses it.
    pub const fn with_recover(mut self) -> Self {
        self.recover = true;
        self
    }

    /// Without an answer of the store ([`Unavailable`](crate::StoreErrorKind::Unavailable)), the body
    /// runs unguarded. It has no [attempt](crate::Attempt::current) then, and so no
    /// [`derive_key`](crate::Attempt::derive_key). A store that answers that it is full, loading or
    /// read-only, or does not let this user in, has answered: then it does not run.
    pub const fn run_on_store_error(mut self) -> Self {
        self.on_store_error = Some(OnStoreError::Run);
        self
    }

    /// Without an answer of the store, the body does not run: [`Error::Store`].
    pub const fn error_on_store_error(mut self) -> Self {
        self.on_store_error = Some(OnStoreError::Error);
        self
    }

    /// Without a key, the body runs unguarded.
    pub const fn run_on_missing_key(mut self) -> Self {
        self.on_missing_key = Some(OnMissingKey::Run);
        self
    }

    /// Without a key, the body does not run.
    pub const fn error_on_missing_key(mut self) -> Self {
        self.on_missing_key = Some(OnMissingKey::Error);
        self
    }

    /// The text a refused user sees: [`Error::message`].
    pub const fn message(mut self, message: &'static str) -> Self {
        self.message = Some(message);
        self
    }

    pub(crate) const fn recovers(&self) -> bool {
        self.recover
    }

    /// Whether it says what only a function can say of itself.
    pub(crate) const fn belongs_to_a_function(&self) -> bool {
        self.forget || self.own_checkpoint || self.recover
    }

    /// The same, with a guard whatever the engine's defaults are; `None` if it asks for none.
    pub(crate) fn always_guarded(self) -> Option<Self> {
        let asks_for_none = self.on_store_error == Some(OnStoreError::Run)
            || self.on_missing_key == Some(OnMissingKey::Run);
        (!asks_for_none).then(|| self.error_on_store_error().error_on_missing_key())
    }

    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) const fn forgets(&self) -> bool {
        self.forget
    }

    pub(crate) fn missing_key(&self, defaults: &Self) -> OnMissingKey {
        self.on_missing_key
            .or(defaults.on_missing_key)
            .unwrap_or_default()
    }

    /// The message, for refusals that come before the settings are known to be valid.
    pub(crate) fn user_message(&self, defaults: &Self) -> Option<&'static str> {
        self.message.or(defaults.message)
    }

    /// This policy over the engine's, over the defaults; checked.
    pub(crate) fn settings(
        &self,
        defaults: &Self,
        engine: &EngineTimes,
    ) -> Result<Settings, Error> {
        let expire = self
            .expire
            .or(defaults.expire)
            .unwrap_or(Duration::from_hours(24));
        let lease = lease(
            self.lease
                .or(defaults.lease.filter(|lease| *lease <= expire)),
            expire,
        )?;
        if expire < Duration::from_millis(1) || expire > LONGEST_EXPIRE {
            return Err(invalid(format!(
                "expire is {expire:?}; allowed is 1 ms to {LONGEST_EXPIRE:?}"
            )));
        }
        Ok(Settings {
            terms: Terms {
                lease: whole_millis(lease),
                expire: whole_millis(expire),
                doubt: whole_millis(engine.doubt),
                limit: whole_millis(engine.limit),
            },
            wait: match self
                .in_progress
                .or(defaults.in_progress)
                .unwrap_or_default()
            {
                InProgress::Reject => None,
                InProgress::Wait => Some(
                    self.wait
                        .or(defaults.wait)
                        .unwrap_or(Duration::from_secs(5)),
                ),
            },
            on_duplicate: self
                .on_duplicate
                .or(defaults.on_duplicate)
                .unwrap_or_default(),
            on_abandoned: self
                .on_abandoned
                .or(defaults.on_abandoned)
                .unwrap_or_default(),
            on_store_error: self
                .on_store_error
                .or(defaults.on_store_error)
                .unwrap_or_default(),
            own_checkpoint: self.own_checkpoint,
            forget: self.forget,
            recover: self.recover,
            message: self.user_message(defaults),
        })
    }
}

fn lease(asked: Option<Duration>, expire: Duration) -> Result<Duration, Error> {
    const USUAL: Duration = Duration::from_secs(30);
    match asked {
        None => Ok(USUAL.min(expire / 2).max(Duration::from_millis(1))),
        Some(lease) if lease < SHORTEST_LEASE => Err(invalid(format!(
            "lease is {lease:?}; the shortest is {SHORTEST_LEASE:?}"
        ))),
        Some(lease) if lease > expire => Err(invalid(format!(
            "lease is {lease:?}, longer than expire, which is {expire:?}"
        ))),
        Some(lease) => Ok(lease),
    }
}

/// Cut to the unit of the stores.
pub(crate) fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

pub(crate) fn invalid(reason: impl Into<String>) -> Error {
    Error::InvalidPolicy {
        reason: reason.into().into(),
    }
}

/// Times that belong to the engine and not to one function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineTimes {
    pub(crate) doubt: Duration,
    pub(crate) limit: Duration,
}

/// A policy with nothing left open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) terms: Terms,
    /// How long to wait for a live attempt elsewhere; `None` is not at all.
    pub(crate) wait: Option<Duration>,
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) on_abandoned: OnAbandoned,
    pub(crate) on_store_error: OnStoreError,
    pub(crate) own_checkpoint: bool,
    pub(crate) forget: bool,
    pub(crate) recover: bool,
    pub(crate) message: Option<&'static str>,
}
