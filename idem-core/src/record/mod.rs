//! The record of one key: its data, and the pure function that is its specification.
//!
//! [`step`] says what each operation does to a record. The memory store runs it as it stands;
//! every other store is tested against it, operation by operation. [`format`](mod@format) is the
//! one place that knows the bytes of a record.

mod debug;
pub mod format;
mod ops;
mod step;

pub use ops::{
    Claim, ClaimReply, Current, Echo, Forget, Grant, Issue, IssueReply, OperatorReply, Outcome,
    Refuse, RefuseReply, Renew, RenewReply, Resolve, Settle, SettleReply, Terms, Verdict,
};
pub use step::{Op, Reply, claim, forget, issue, refuse, renew, resolve, settle, step};

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::fingerprint::Fingerprint;

/// A moment by the store's clock, in microseconds since the Unix epoch.
///
/// Leases and deadlines are compared in this time only; no client's wall clock decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StoreTime(u64);

impl StoreTime {
    /// The moment `micros` microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// `duration` later; far beyond any calendar it stays at the last moment.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// `duration` earlier, at the earliest the epoch.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Whether a deadline at `self` has passed: one that equals `now` has.
    #[must_use]
    pub fn has_passed(self, now: Self) -> bool {
        self <= now
    }

    /// Rounded up to a whole millisecond, the unit in which stores expire records.
    #[must_use]
    pub fn ceil_millis(self) -> Self {
        Self(self.0.div_ceil(1000).saturating_mul(1000))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Who runs an attempt: 128 random bits, made before the first send and reused by every resend.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner([u8; 16]);

impl Owner {
    /// Nobody: the owner of a record that no attempt has taken yet.
    pub const NOBODY: Self = Self([0; 16]);

    /// The owner with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes, as stores keep them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Owner {
    /// Names an owner without giving away what would let somebody act for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = blake3::hash(&self.0).to_hex();
        write!(f, "Owner(#{})", &hash[..8])
    }
}

/// A number that grows with every attempt on a key, also after release, expiry or loss.
///
/// Hand it to the resource that the body writes to, and let that refuse a smaller one: before the
/// body reads there, as [locks](crate::lock) show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(u64);

impl Fence {
    /// The fence with this number.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number to compare.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number as SQL has it. A fence is at most a store time in microseconds and the attempts
    /// since, so that it fits.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        if self.0 > i64::MAX.cast_unsigned() {
            i64::MAX
        } else {
            self.0.cast_signed()
        }
    }

    /// The SQL condition under which a row may be written with this fence: that nobody with a
    /// higher one has written it. It goes into the `WHERE` of an update that sets `column` to
    /// [`as_i64`](Self::as_i64); zero rows means that a later holder was there.
    ///
    /// That update comes **first**, in one transaction with what is then read and written. In the
    /// last write alone the condition lets in a holder that wakes while the next one has only read:
    /// see [locks](crate::lock).
    ///
    /// The same by hand, with a column that is `NOT NULL DEFAULT 0`:
    /// `UPDATE … SET fence = $1 WHERE id = $2 AND fence <= $1`.
    ///
    /// # Examples
    /// ```
    /// use idem_core::record::Fence;
    ///
    /// let fence = Fence::from_u64(17);
    /// assert_eq!(fence.condition("fence"), "(fence IS NULL OR fence <= 17)");
    /// ```
    #[must_use]
    pub fn condition(self, column: &'static str) -> String {
        format!("({column} IS NULL OR {column} <= {})", self.as_i64())
    }

    /// The fence after `self`, drawn at `now`: it also passes every fence that was forgotten.
    #[must_use]
    fn next(self, now: StoreTime) -> Self {
        Self(self.0.saturating_add(1).max(now.0))
    }
}

impl From<Fence> for u64 {
    fn from(fence: Fence) -> Self {
        fence.as_u64()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// To whom a one-time token was given: a hash of the authenticated caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Subject([u8; 16]);

impl Subject {
    /// The subject of this caller.
    #[must_use]
    pub fn of(caller: &str) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&blake3::hash(caller.as_bytes()).as_bytes()[..16]);
        Self(bytes)
    }

    /// The subject with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes, as stores keep them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// What a claim does with an abandoned record whose checkpoint had passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnAbandoned {
    /// Answer [`OutcomeUnknown`](crate::Error::OutcomeUnknown) until somebody knows.
    #[default]
    Hold,
    /// Run the body again: its effects may happen more than once.
    Rerun,
}

/// What a store keeps for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The last attempt's owner.
    pub owner: Owner,
    /// The last attempt's fence.
    pub fence: Fence,
    /// The last attempt's number, from 1; 0 where none has run.
    pub attempt: u32,
    /// Hash of the payload, where the function has a `fingerprint`.
    pub fingerprint: Option<Fingerprint>,
    /// Set on the record of a one-time token.
    pub token: Option<TokenBinding>,
    /// Until when a closed mark of this key, or of one before, has to stay.
    pub closed_until: Option<StoreTime>,
    /// Where the record is in its life.
    pub state: State,
    /// When the store drops it: whole milliseconds.
    pub expires_at: StoreTime,
}

/// The token side of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBinding {
    /// Whose token it is.
    pub subject: Subject,
    /// Until when the token can be used: whole milliseconds.
    pub until: StoreTime,
}

/// Where a record is in its life.
#[derive(Clone, PartialEq, Eq)]
pub enum State {
    /// An attempt has it.
    Processing(Processing),
    /// Done.
    Success {
        /// When.
        at: StoreTime,
        /// The encoded result, where one was stored.
        result: Option<Bytes>,
    },
    /// The body failed.
    Failed {
        /// When.
        at: StoreTime,
        /// The encoded error, where it is to be replayed; without it the next claim runs again.
        error: Option<Bytes>,
    },
    /// A one-time token that waits for its use.
    Issued,
    /// Refused before it began.
    Refused,
    /// What is left of an ended attempt, so that its late packets do nothing. Absent to `peek`,
    /// `scan` and every other owner's claim.
    Closed {
        /// Ended by an operator: its owner's settle is told that it was superseded.
        by_operator: bool,
    },
}

/// An attempt that has not been settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "five independent marks, as stored"
)]
pub struct Processing {
    /// When it was granted.
    pub since: StoreTime,
    /// Until when it keeps the record without a sign of life.
    pub lease_until: StoreTime,
    /// Retention after it has finished: whole milliseconds.
    pub expire: Duration,
    /// The policy it was claimed with.
    pub policy: OnAbandoned,
    /// Its effects may have begun.
    pub checkpoint: bool,
    /// It followed an attempt that died.
    pub takeover: bool,
    /// …whose checkpoint had passed.
    pub doubt: bool,
    /// Its owner gave it up; only the owner's success is still taken, until a takeover.
    pub given_up: bool,
    /// Somebody waits for its end.
    pub waiters: bool,
}

/// What a store found at a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// Nothing.
    Absent,
    /// Bytes that are no record, or one of an unknown version.
    Damaged,
    /// A record; it may have expired without having been purged yet.
    Record(Record),
}

/// The name of a [`State`], as operators read and compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// An attempt has it, or had it when it died.
    Processing,
    /// Done.
    Success,
    /// The body failed.
    Failed,
    /// A one-time token that waits for its use.
    Issued,
    /// Refused before it began.
    Refused,
    /// Foreign bytes.
    Damaged,
}

impl State {
    /// The status of this state; `None` for a closed mark, which nobody sees.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Processing(_) => Some(Status::Processing),
            Self::Success { .. } => Some(Status::Success),
            Self::Failed { .. } => Some(Status::Failed),
            Self::Issued => Some(Status::Issued),
            Self::Refused => Some(Status::Refused),
            Self::Closed { .. } => None,
        }
    }
}
