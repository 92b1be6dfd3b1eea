//! What to do with a message.

use std::fmt;
use std::time::Duration;

/// The header in which a copy carries how many of its deliveries have failed, a number.
pub const RETRIES_HEADER: &str = "idem-retries";

/// The header in which a parked message or a dead letter carries why, a [code](Reason::code).
pub const REASON_HEADER: &str = "idem-reason";

/// What to do with a message. Exhaustive: a glue that forgets one loses messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is done: acknowledge it.
    Ack,
    /// Publish a copy that comes back after `by`, then acknowledge it.
    Delay {
        /// After how long; a broker that has only a few delays takes the next longer one.
        by: Duration,
        /// What the copy says in [`RETRIES_HEADER`]; one more than before only if this counts.
        retries: u32,
    },
    /// Keep it unacknowledged, begin no other, and handle it again when the consumer is
    /// [ready](super::Consumer::ready).
    Pause {
        /// How long the consumer holds back.
        by: Duration,
    },
    /// Publish a copy to the parked messages, then acknowledge it. It goes on after `resolve`.
    Park,
    /// Publish a copy to the dead letters, then acknowledge it.
    Dead {
        /// Why, for [`REASON_HEADER`].
        reason: Reason,
    },
}

impl Action {
    /// What the copy says in [`REASON_HEADER`], if it has to say anything.
    #[must_use]
    pub fn reason_code(&self) -> Option<&'static str> {
        match self {
            Self::Park => Some("outcome_unknown"),
            Self::Dead { reason } => Some(reason.code()),
            Self::Ack | Self::Delay { .. } | Self::Pause { .. } => None,
        }
    }
}

/// Why a message is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It has no id, or a blank one.
    MissingId,
    /// Its payload can not be read.
    Unreadable,
    /// The handler said that no retry helps.
    Rejected,
    /// The handler failed as often as the rules allow.
    RetriesExhausted,
    /// Its record could not be kept, as often as the rules allow, because of an answer that it may be
    /// alone to meet ([`StoreErrorKind::Protocol`](crate::StoreErrorKind::Protocol)): in a transaction
    /// that its body has spoilt, or to a result that the store does not take.
    Store,
    /// The function's error was stored, and is what every retry gets.
    StoredError,
    /// [`Error::Mismatch`](crate::Error::Mismatch): its key was used with another payload.
    Mismatch,
    /// [`Error::MissingKey`](crate::Error::MissingKey): a part of its key is missing or blank.
    MissingKey,
    /// [`Error::InvalidKey`](crate::Error::InvalidKey).
    InvalidKey,
    /// [`Error::Damaged`](crate::Error::Damaged): foreign bytes in place of its record.
    Damaged,
    /// [`Error::TokenRejected`](crate::Error::TokenRejected).
    TokenRejected,
    /// [`Error::Refused`](crate::Error::Refused): it was cancelled before it came.
    Refused,
}

impl Reason {
    /// A stable, machine-readable name, in `snake_case`. Where the guard refused, it is
    /// [`Error::code`](crate::Error::code).
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::MissingId => "missing_id",
            Self::Unreadable => "unreadable",
            Self::Rejected => "rejected",
            Self::RetriesExhausted => "retries_exhausted",
            Self::Store => "store",
            Self::StoredError => "stored_error",
            Self::Mismatch => "mismatch",
            Self::MissingKey => "missing_key",
            Self::InvalidKey => "invalid_key",
            Self::Damaged => "damaged",
            Self::TokenRejected => "token_rejected",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
