//! A record, as operators and programs read it.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::record::{Fence, Owner, Processing, Record, Slot, State, Status, StoreTime};

/// A record, as it was read.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordView {
    /// The key, without the namespace: what [`Key::parse`](crate::Key::parse) takes.
    pub key: String,
    /// Where it is in its life.
    pub status: Status,
    /// The last attempt's number; 0 where none has run.
    pub attempt: u32,
    /// The last attempt's fence.
    pub fence: Fence,
    /// Who has, or had, it.
    pub owner: Owner,
    /// When the last attempt was granted or ended, by the store's clock.
    pub at: StoreTime,
    /// How long ago that was.
    pub age: Duration,
    /// When the store drops the record, from when it was read.
    pub expires_in: Duration,
    /// The attempt that has it, if it is processing.
    pub running: Option<Running>,
    /// The encoded result or error, where one is stored.
    pub payload: Option<Bytes>,
}

/// The attempt of a record that is processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "independent marks, as read")]
pub struct Running {
    /// What is left of its lease; zero if it is abandoned.
    pub lease_left: Duration,
    /// Its lease has lapsed or was given up.
    pub is_abandoned: bool,
    /// Its effects may have begun.
    pub checkpoint: bool,
    /// It follows an attempt that died.
    pub takeover: bool,
    /// Somebody waits for it.
    pub waiters: bool,
}

impl fmt::Debug for RecordView {
    /// Everything but the payload, of which only the size is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordView")
            .field("key", &self.key)
            .field("status", &self.status)
            .field("attempt", &self.attempt)
            .field("fence", &self.fence)
            .field("owner", &self.owner)
            .field("age", &self.age)
            .field("expires_in", &self.expires_in)
            .field("running", &self.running)
            .field("payload_bytes", &self.payload.as_ref().map(Bytes::len))
            .finish_non_exhaustive()
    }
}

impl RecordView {
    pub(super) fn new(key: String, slot: Slot, now: StoreTime) -> Option<Self> {
        match slot {
            Slot::Absent => None,
            Slot::Damaged => Some(Self {
                key,
                status: Status::Damaged,
                attempt: 0,
                fence: Fence::default(),
                owner: Owner::NOBODY,
                at: now,
                age: Duration::ZERO,
                expires_in: Duration::ZERO,
                running: None,
                payload: None,
            }),
            Slot::Record(record) => Self::of_record(key, &record, now),
        }
    }

    fn of_record(key: String, record: &Record, now: StoreTime) -> Option<Self> {
        let granted = StoreTime::from_micros(record.fence.as_u64());
        let (at, running, payload) = match &record.state {
            State::Processing(attempt) => (attempt.since, Some(Running::new(attempt, now)), None),
            State::Success { at, result } => (*at, None, result.clone()),
            State::Failed { at, error } => (*at, None, error.clone()),
            State::Issued | State::Refused | State::Closed { .. } => (granted, None, None),
        };
        Some(Self {
            key,
            status: record.state.status()?,
            attempt: record.attempt,
            fence: record.fence,
            owner: record.owner,
            at,
            age: now.since(at),
            expires_in: record.expires_at.since(now),
            running,
            payload,
        })
    }
}

impl Running {
    fn new(attempt: &Processing, now: StoreTime) -> Self {
        Self {
            lease_left: attempt.lease_until.since(now),
            is_abandoned: attempt.lease_until.has_passed(now),
            checkpoint: attempt.checkpoint,
            takeover: attempt.takeover,
            waiters: attempt.waiters,
        }
    }
}
