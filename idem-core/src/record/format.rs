//! The bytes of a record, version 1: what Redis keeps at a key, and what a format mark elsewhere
//! refers to.
//!
//! Numbers are big-endian and unsigned. Times are microseconds of the store's clock in 7 bytes;
//! all of them stay below 2^53, because Lua, which reads and writes the same bytes in
//! `lua/record.lua`, computes with doubles.
//!
//! | bytes | what | present |
//! |---|---|---|
//! | 1 | version, 1 | always |
//! | 1 | status in the low half, flags in the high half | always |
//! | 4 | attempt number | always |
//! | 7 | fence | always |
//! | 16 | owner | always |
//! | 16 | fingerprint | flag `0x10` |
//! | 16 + 7 | token: subject, usable until | flag `0x20` |
//! | 7 | until when a closed mark has to stay | flag `0x40` |
//! | 1 + 7 + 7 + 6 | marks, since, lease until, expire in milliseconds | status 0 |
//! | 7 + rest | when it ended, then the payload if flag `0x80` is set | status 1, 2 |
//!
//! Statuses: 0 processing, 1 success, 2 failed, 3 refused, 7 closed by an operator, 8 closed,
//! 9 issued. Marks: 1 checkpoint, 2 takeover, 4 doubt, 8 given up, 16 waiters, 32 rerun.
//!
//! A closed mark always has the flag `0x40`, with its own end in it. When the record expires is
//! *not* in the bytes: that is the key's time to live.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, TryGetError};

use super::{
    Fence, OnAbandoned, Owner, Processing, Record, State, StoreTime, Subject, TokenBinding,
};
use crate::fingerprint::Fingerprint;

/// The version byte that this build writes, and the only one it reads.
pub const VERSION: u8 = 1;

/// Version bytes that a later format may use; anything above is somebody else's value.
const LAST_VERSION: u8 = 15;

const TIME: usize = 7;
const MILLIS: usize = 6;

/// The largest number that a time or a fence may have here: Lua's doubles are exact up to it.
pub(crate) const LARGEST: u64 = (1 << 53) - 1;

const STATUS: u8 = 0x0f;

mod status {
    pub(super) const PROCESSING: u8 = 0;
    pub(super) const SUCCESS: u8 = 1;
    pub(super) const FAILED: u8 = 2;
    pub(super) const REFUSED: u8 = 3;
    pub(super) const CLOSED_BY_OPERATOR: u8 = 7;
    pub(super) const CLOSED: u8 = 8;
    pub(super) const ISSUED: u8 = 9;
}

mod flag {
    pub(super) const FINGERPRINT: u8 = 0x10;
    pub(super) const TOKEN: u8 = 0x20;
    pub(super) const CLOSED_UNTIL: u8 = 0x40;
    pub(super) const PAYLOAD: u8 = 0x80;
}

mod mark {
    pub(super) const CHECKPOINT: u8 = 1;
    pub(super) const TAKEOVER: u8 = 2;
    pub(super) const DOUBT: u8 = 4;
    pub(super) const GIVEN_UP: u8 = 8;
    pub(super) const WAITERS: u8 = 16;
    pub(super) const RERUN: u8 = 32;
    pub(super) const ALL: u8 = 63;
}

/// Why some bytes are not a record that this build can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Not one of our values.
    #[error("not a record")]
    Foreign,
    /// A record of a format that this build does not know.
    #[error("a record of version {0}; this build reads version {VERSION}")]
    UnknownVersion(u8),
    /// The record ends too early.
    #[error("a record that ends too early")]
    Truncated,
    /// The record goes on behind its end.
    #[error("a record with {0} bytes too many")]
    Overlong(usize),
    /// A status, a flag or a mark that version 1 does not have.
    #[error("a record with impossible status and flags {0:#04x}")]
    Impossible(u8),
}

impl From<TryGetError> for FormatError {
    fn from(_: TryGetError) -> Self {
        Self::Truncated
    }
}

/// The bytes of `record`. Its `expires_at` is not among them, but for a closed mark.
///
/// Times and fences beyond 2^53 µs (the year 2255) are cut to it, and `expire` to 2^48 ms.
#[must_use]
pub fn encode(record: &Record) -> Vec<u8> {
    let (status, payload) = status_and_payload(&record.state);
    let closed_until = match record.state {
        State::Closed { .. } => Some(record.expires_at),
        _ => record.closed_until,
    };
    let mut head = status;
    let mut set = |flag, is_set| head |= if is_set { flag } else { 0 };
    set(flag::FINGERPRINT, record.fingerprint.is_some());
    set(flag::TOKEN, record.token.is_some());
    set(flag::CLOSED_UNTIL, closed_until.is_some());
    set(flag::PAYLOAD, payload.is_some());

    let mut out = Vec::with_capacity(96 + payload.map_or(0, Bytes::len));
    out.put_u8(VERSION);
    out.put_u8(head);
    out.put_u32(record.attempt);
    put_time(&mut out, record.fence.as_u64());
    out.put_slice(record.owner.as_bytes());
    if let Some(fingerprint) = &record.fingerprint {
        out.put_slice(fingerprint.as_bytes());
    }
    if let Some(token) = &record.token {
        out.put_slice(token.subject.as_bytes());
        put_time(&mut out, token.until.as_micros());
    }
    if let Some(until) = closed_until {
        put_time(&mut out, until.as_micros());
    }
    put_state(&mut out, &record.state);
    out
}

/// The status's number, and the payload that ends the bytes.
pub(crate) fn status_and_payload(state: &State) -> (u8, Option<&Bytes>) {
    match state {
        State::Processing(_) => (status::PROCESSING, None),
        State::Success { result, .. } => (status::SUCCESS, result.as_ref()),
        State::Failed { error, .. } => (status::FAILED, error.as_ref()),
        State::Refused => (status::REFUSED, None),
        State::Closed { by_operator: true } => (status::CLOSED_BY_OPERATOR, None),
        State::Closed { by_operator: false } => (status::CLOSED, None),
        State::Issued => (status::ISSUED, None),
    }
}

fn put_state(out: &mut Vec<u8>, state: &State) {
    match state {
        State::Processing(attempt) => {
            out.put_u8(marks(attempt));
            put_time(out, attempt.since.as_micros());
            put_time(out, attempt.lease_until.as_micros());
            let expire = u64::try_from(attempt.expire.as_millis()).unwrap_or(u64::MAX);
            out.put_uint(expire.min((1 << 48) - 1), MILLIS);
        }
        State::Success {
            at,
            result: payload,
        }
        | State::Failed { at, error: payload } => {
            put_time(out, at.as_micros());
            out.put_slice(payload.as_deref().unwrap_or_default());
        }
        State::Refused | State::Closed { .. } | State::Issued => {}
    }
}

fn put_time(out: &mut Vec<u8>, micros: u64) {
    out.put_uint(micros.min(LARGEST), TIME);
}

fn marks(attempt: &Processing) -> u8 {
    [
        (mark::CHECKPOINT, attempt.checkpoint),
        (mark::TAKEOVER, attempt.takeover),
        (mark::DOUBT, attempt.doubt),
        (mark::GIVEN_UP, attempt.given_up),
        (mark::WAITERS, attempt.waiters),
        (mark::RERUN, attempt.policy == OnAbandoned::Rerun),
    ]
    .into_iter()
    .filter(|(_, is_set)| *is_set)
    .fold(0, |marks, (mark, _)| marks | mark)
}

/// The record in `bytes`, which the store drops at `expires_at`.
///
/// # Errors
/// [`FormatError`] for anything that [`encode`] of this version did not write.
pub fn decode(mut bytes: Bytes, expires_at: StoreTime) -> Result<Record, FormatError> {
    match bytes.first() {
        Some(&VERSION) => bytes.advance(1),
        Some(&version) if (1..=LAST_VERSION).contains(&version) => {
            return Err(FormatError::UnknownVersion(version));
        }
        _ => return Err(FormatError::Foreign),
    }
    let head = bytes.try_get_u8()?;
    if !is_possible(head) {
        return Err(FormatError::Impossible(head));
    }
    let has = |flag| head & flag != 0;
    let attempt = bytes.try_get_u32()?;
    let fence = Fence::from_u64(bytes.try_get_uint(TIME)?);
    let owner = Owner::from_bytes(get_16(&mut bytes)?);
    let fingerprint = has(flag::FINGERPRINT)
        .then(|| get_16(&mut bytes).map(Fingerprint::from_bytes))
        .transpose()?;
    let token = has(flag::TOKEN)
        .then(|| get_token(&mut bytes))
        .transpose()?;
    let closed_until = has(flag::CLOSED_UNTIL)
        .then(|| get_time(&mut bytes))
        .transpose()?;
    let state = get_state(&mut bytes, head)?;
    let is_closed = matches!(state, State::Closed { .. });
    Ok(Record {
        owner,
        fence,
        attempt,
        fingerprint,
        token,
        closed_until: closed_until.filter(|_| !is_closed),
        state,
        expires_at,
    })
}

/// Whether `encode` can write this status with these flags; `lua/record.lua` asks the same.
fn is_possible(head: u8) -> bool {
    let flags = head & !STATUS;
    match head & STATUS {
        status::PROCESSING => flags & flag::PAYLOAD == 0,
        status::SUCCESS | status::FAILED => true,
        status::REFUSED => flags & !flag::CLOSED_UNTIL == 0,
        status::CLOSED | status::CLOSED_BY_OPERATOR => flags == flag::CLOSED_UNTIL,
        status::ISSUED => flags & !flag::CLOSED_UNTIL == flag::TOKEN,
        _ => false,
    }
}

fn get_state(bytes: &mut Bytes, head: u8) -> Result<State, FormatError> {
    let state = match head & STATUS {
        status::PROCESSING => State::Processing(get_processing(bytes)?),
        status::SUCCESS => State::Success {
            at: get_time(bytes)?,
            result: get_payload(bytes, head),
        },
        status::FAILED => State::Failed {
            at: get_time(bytes)?,
            error: get_payload(bytes, head),
        },
        status::REFUSED => State::Refused,
        status::CLOSED => State::Closed { by_operator: false },
        status::CLOSED_BY_OPERATOR => State::Closed { by_operator: true },
        status::ISSUED => State::Issued,
        _ => return Err(FormatError::Impossible(head)),
    };
    if bytes.has_remaining() {
        return Err(FormatError::Overlong(bytes.remaining()));
    }
    Ok(state)
}

fn get_processing(bytes: &mut Bytes) -> Result<Processing, FormatError> {
    let marks = bytes.try_get_u8()?;
    if marks & !mark::ALL != 0 {
        return Err(FormatError::Impossible(marks));
    }
    let has = |mark| marks & mark != 0;
    Ok(Processing {
        since: get_time(bytes)?,
        lease_until: get_time(bytes)?,
        expire: Duration::from_millis(bytes.try_get_uint(MILLIS)?),
        policy: if has(mark::RERUN) {
            OnAbandoned::Rerun
        } else {
            OnAbandoned::Hold
        },
        checkpoint: has(mark::CHECKPOINT),
        takeover: has(mark::TAKEOVER),
        doubt: has(mark::DOUBT),
        given_up: has(mark::GIVEN_UP),
        waiters: has(mark::WAITERS),
    })
}

fn get_payload(bytes: &mut Bytes, head: u8) -> Option<Bytes> {
    (head & flag::PAYLOAD != 0).then(|| bytes.split_to(bytes.len()))
}

fn get_token(bytes: &mut Bytes) -> Result<TokenBinding, FormatError> {
    Ok(TokenBinding {
        subject: Subject::from_bytes(get_16(bytes)?),
        until: get_time(bytes)?,
    })
}

fn get_time(bytes: &mut Bytes) -> Result<StoreTime, FormatError> {
    Ok(StoreTime::from_micros(bytes.try_get_uint(TIME)?))
}

fn get_16(bytes: &mut Bytes) -> Result<[u8; 16], FormatError> {
    let mut sixteen = [0; 16];
    bytes.try_copy_to_slice(&mut sixteen)?;
    Ok(sixteen)
}

#[cfg(test)]
mod tests;
