//! What a call's end means for its message: a pure function of plain data.

use std::time::Duration;

use super::{Action, Reason};
use crate::error::{Error, StoreErrorKind};
use crate::observe::Outcome;

/// A lease that ends in a microsecond is no reason to ask a million times a second.
const LEAST_DELAY: Duration = Duration::from_millis(100);

/// What a handler's error means. Your function says it, so that the guard's refusals are found in
/// any error type.
#[derive(Debug, Clone, Copy)]
pub enum Meaning<'a> {
    /// The guard refused, or a call inside the body was refused: the consumer knows what to do.
    Refusal(&'a Error),
    /// The handler failed; it may pass. Retried with back-off, counted and bounded. Whether that runs
    /// the body again is up to the guard's [`OnError`](crate::OnError): not after an `Abandon`, the word
    /// for an error that leaves open what has happened.
    Retry,
    /// What every message needs, such as the database, does not answer. All are held back for a
    /// pause, and none is counted: an outage must not make dead letters of the whole queue. What a
    /// database says of itself is told apart from what it says of a statement by
    /// `sql::SqlError::Away`.
    Away,
    /// The handler failed, and no retry helps.
    Dead,
    /// The payload can not be read.
    Unreadable,
}

/// How the call for a delivery ended.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// Ok: executed, replayed or recovered.
    Done,
    /// Err.
    Failed {
        /// What it means.
        meaning: Meaning<'a>,
        /// How the call came to it.
        outcome: Outcome,
    },
    /// The handler panicked, or the function that says what its error means.
    Panicked,
    /// There was no call: the message has no id.
    MissingId,
}

impl<'a> Answer<'a> {
    pub(super) fn refusal(self) -> Option<&'a Error> {
        match self {
            Self::Failed {
                meaning: Meaning::Refusal(error),
                ..
            } => Some(error),
            _ => None,
        }
    }
}

/// Bounds and times.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use idem_core::consumer::Rules;
///
/// let rules = Rules::new()
///     .retries(5)
///     .backoff(Duration::from_secs(2), Duration::from_mins(10))
///     .pause(Duration::from_secs(10));
/// # let _ = rules;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Rules {
    retries: u32,
    first: Duration,
    longest: Duration,
    pause: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules {
    /// 10 retries, after 1 s, 2 s, 4 s … at most 5 min; pauses of 5 s.
    pub const fn new() -> Self {
        Self {
            retries: 10,
            first: Duration::from_secs(1),
            longest: Duration::from_mins(5),
            pause: Duration::from_secs(5),
        }
    }

    /// How often a message whose handler fails, or whose record can not be kept, is tried again
    /// before it is dead; and one whose `recover` can not tell, before it is parked.
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// The delay of the first retry, which doubles with each, and the longest.
    pub const fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first = first;
        self.longest = longest;
        self
    }

    /// How long to hold back when the store does not answer, before asking it again; and how long
    /// one message waits whose transaction others were in the way of, or at least whose record could
    /// not be kept.
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// What to do with a message that has failed `retries` times before and whose call ended so.
    #[must_use]
    pub fn verdict(&self, answer: Answer<'_>, retries: u32) -> Action {
        match answer {
            Answer::Done => Action::Ack,
            Answer::MissingId => dead(Reason::MissingId),
            Answer::Panicked => self.retry(retries),
            Answer::Failed { meaning, outcome } => self.failed(meaning, outcome, retries),
        }
    }

    fn failed(&self, meaning: Meaning<'_>, outcome: Outcome, retries: u32) -> Action {
        match meaning {
            Meaning::Refusal(error) => self.refused(error, outcome, retries),
            Meaning::Away => Action::Pause { by: self.pause },
            Meaning::Unreadable => dead(Reason::Unreadable),
            // Acknowledging it could lose the dead letter of the first: it may have died between.
            Meaning::Dead | Meaning::Retry if is_stored(outcome) => dead(Reason::StoredError),
            Meaning::Dead => dead(Reason::Rejected),
            Meaning::Retry => self.retry(retries),
        }
    }

    fn refused(&self, error: &Error, outcome: Outcome, retries: u32) -> Action {
        match error {
            // It has failed, whatever else can be read of it.
            Error::ResultUnavailable { .. } if is_stored(outcome) => dead(Reason::StoredError),
            // Something inside the body was done before, but the body itself has failed.
            Error::Duplicate { .. } | Error::ResultUnavailable { .. }
                if outcome != Outcome::Refused =>
            {
                self.retry(retries)
            }
            Error::Duplicate { .. } | Error::ResultUnavailable { .. } => Action::Ack,
            Error::InProgress { retry_after, .. } => Action::Delay {
                by: (*retry_after).max(LEAST_DELAY),
                retries,
            },
            // In both the others can be handled meanwhile. What was in this one's way goes by itself.
            Error::Store { source } if source.kind() == StoreErrorKind::Conflict => Action::Delay {
                by: self.pause,
                retries,
            },
            // This message may be alone to meet it, as in a transaction that its body has spoilt, and
            // may meet it each time.
            Error::Store { source } if source.kind() == StoreErrorKind::Protocol => {
                self.again(retries, self.pause, dead(Reason::Store))
            }
            // A wrong set-up is no fault of the message: it waits for whoever mends it.
            Error::Store { .. }
            | Error::LeaseLost { .. }
            | Error::InvalidPolicy { .. }
            | Error::PrefixConflict { .. }
            | Error::NotInstalled => Action::Pause { by: self.pause },
            // Its `recover` could not tell yet, and is asked by the next delivery. Not for ever: it
            // is somebody's to look if it never can.
            Error::OutcomeUnknown { .. } if error.is_retryable() => {
                self.again(retries, Duration::ZERO, Action::Park)
            }
            Error::OutcomeUnknown { .. } => Action::Park,
            Error::Mismatch { .. } => dead(Reason::Mismatch),
            Error::MissingKey { .. } => dead(Reason::MissingKey),
            Error::InvalidKey { .. } => dead(Reason::InvalidKey),
            Error::Damaged { .. } => dead(Reason::Damaged),
            Error::TokenRejected { .. } => dead(Reason::TokenRejected),
            Error::Refused { .. } => dead(Reason::Refused),
        }
    }

    fn retry(&self, retries: u32) -> Action {
        self.again(retries, Duration::ZERO, dead(Reason::RetriesExhausted))
    }

    /// With back-off, `least` or longer, and at last something else.
    fn again(&self, retries: u32, least: Duration, at_last: Action) -> Action {
        if retries >= self.retries {
            return at_last;
        }
        let factor = 2_u32.saturating_pow(retries);
        let backoff = self.first.saturating_mul(factor).min(self.longest);
        Action::Delay {
            by: backoff.max(least),
            retries: retries + 1,
        }
    }
}

/// Whether an error is the one that the record has.
const fn is_stored(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Replayed | Outcome::Waited)
}

const fn dead(reason: Reason) -> Action {
    Action::Dead { reason }
}

#[cfg(test)]
mod tests;
