//! What a script is told: packed strings, as the head of each file in `lua/` lists them.

use std::time::Duration;

use crate::fingerprint::Fingerprint;
use crate::record::{
    Claim, Echo, Forget, Issue, OnAbandoned, Outcome, Owner, Refuse, Renew, Resolve, Settle,
    Status, StoreTime, TokenBinding, Verdict,
};

/// Lua's doubles are exact up to here.
const LARGEST_TIME: u64 = (1 << 53) - 1;

/// The arguments of one script call.
#[derive(Debug)]
pub(super) struct Argv<'a> {
    head: Option<Packed>,
    payload: Option<&'a [u8]>,
    echo: Option<Packed>,
}

impl<'a> Argv<'a> {
    /// No arguments at all.
    pub(super) const NONE: Argv<'static> = Argv {
        head: None,
        payload: None,
        echo: None,
    };

    fn new(head: Packed, payload: Option<&'a [u8]>) -> Self {
        Self {
            head: Some(head),
            payload,
            echo: None,
        }
    }

    /// The same, and what the owner knows of its record.
    pub(super) fn with_echo(self, echo: Packed) -> Self {
        Self {
            payload: Some(self.payload.unwrap_or_default()),
            echo: Some(echo),
            ..self
        }
    }

    /// In the order of `ARGV`.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let head = self.head.as_ref().map(Packed::as_slice);
        let echo = self.echo.as_ref().map(Packed::as_slice);
        [head, self.payload, echo].into_iter().flatten()
    }

    /// The bytes of all of them.
    pub(super) fn len(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }
}

/// A packed string of at most the longest argument's length, built without an allocation.
#[derive(Debug)]
pub(super) struct Packed {
    bytes: [u8; Self::CAPACITY],
    len: usize,
}

impl Packed {
    /// A claim with fingerprint and subject: 42 + 16 + 16.
    const CAPACITY: usize = 80;

    fn new() -> Self {
        Self {
            bytes: [0; Self::CAPACITY],
            len: 0,
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        let end = self.len + bytes.len();
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.len = end;
        self
    }

    fn byte(self, byte: u8) -> Self {
        self.bytes(&[byte])
    }

    fn flags<const N: usize>(self, flags: [(u8, bool); N]) -> Self {
        let set = flags.into_iter().filter(|(_, is_set)| *is_set);
        self.byte(set.fold(0, |all, (flag, _)| all | flag))
    }

    /// Big-endian in `width` bytes; a larger number is cut to the largest.
    fn number(self, number: u64, width: usize) -> Self {
        let largest = u64::MAX >> (64 - 8 * width);
        self.bytes(&number.min(largest).to_be_bytes()[8 - width..])
    }

    fn time(self, time: StoreTime) -> Self {
        self.number(time.as_micros().min(LARGEST_TIME), 7)
    }

    /// Whole milliseconds in five bytes: up to 34 years.
    fn millis(self, duration: Duration) -> Self {
        self.number(millis(duration), 5)
    }

    fn owner(self, owner: Owner) -> Self {
        self.bytes(owner.as_bytes())
    }

    fn fingerprint(self, fingerprint: Option<&Fingerprint>) -> Self {
        match fingerprint {
            Some(fingerprint) => self.bytes(fingerprint.as_bytes()),
            None => self,
        }
    }

    fn token(self, token: Option<&TokenBinding>) -> Self {
        match token {
            Some(token) => self.bytes(token.subject.as_bytes()).time(token.until),
            None => self,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn claim(op: &Claim) -> Argv<'static> {
    let packed = Packed::new()
        .flags([
            (1, op.fingerprint.is_some()),
            (2, op.token.is_some()),
            (4, op.checkpoint),
            (8, op.policy == OnAbandoned::Rerun),
            (16, op.recover),
            (32, op.wait),
        ])
        .owner(op.owner)
        .time(op.not_after)
        .number(millis(op.terms.limit), 3)
        .millis(op.terms.lease)
        .millis(op.terms.expire)
        .millis(op.terms.doubt)
        .fingerprint(op.fingerprint.as_ref());
    let packed = match &op.token {
        Some(subject) => packed.bytes(subject.as_bytes()),
        None => packed,
    };
    Argv::new(packed, None)
}

pub(super) fn renew(op: &Renew) -> Argv<'static> {
    let head = Packed::new()
        .flags([(1, op.checkpoint)])
        .owner(op.owner)
        .time(op.not_after)
        .millis(op.terms.lease)
        .millis(op.terms.expire)
        .millis(op.terms.doubt);
    Argv::new(head, None)
}

/// What rebuilds the record of a renewal that found nothing, if it may.
pub(super) fn renew_echo(op: &Renew) -> Option<Packed> {
    let echo = &op.echo;
    (echo.checkpoint && !op.checkpoint).then(|| {
        echo_head(echo)
            .time(echo.grant.since)
            .flags([
                (1, echo.checkpoint),
                (2, echo.grant.takeover),
                (4, echo.grant.doubt),
                (32, echo.policy == OnAbandoned::Rerun),
            ])
            .fingerprint(echo.fingerprint.as_ref())
            .token(echo.grant.token.as_ref())
    })
}

pub(super) fn settle(op: &Settle) -> Argv<'_> {
    let (outcome, payload) = match &op.outcome {
        Outcome::Success(Some(result)) => (1, Some(&result[..])),
        Outcome::Success(None) => (2, None),
        Outcome::SuccessForget => (3, None),
        Outcome::Failed => (4, None),
        Outcome::FailedWith(error) => (5, Some(&error[..])),
        Outcome::Release => (6, None),
        Outcome::Abandon => (7, None),
        Outcome::GiveUp => (8, None),
    };
    let head = Packed::new()
        .byte(outcome)
        .owner(op.owner)
        .time(op.not_after)
        .millis(op.terms.expire)
        .millis(op.terms.mark())
        .millis(op.terms.doubt);
    Argv::new(head, payload)
}

/// What rebuilds the record of a success that found nothing, if it may.
pub(super) fn settle_echo(op: &Settle) -> Option<Packed> {
    let echo = op.echo.as_ref()?;
    matches!(op.outcome, Outcome::Success(_)).then(|| {
        echo_head(echo)
            .fingerprint(echo.fingerprint.as_ref())
            .token(echo.grant.token.as_ref())
    })
}

fn echo_head(echo: &Echo) -> Packed {
    Packed::new()
        .time(echo.answered)
        .flags([
            (0x10, echo.fingerprint.is_some()),
            (0x20, echo.grant.token.is_some()),
        ])
        .number(u64::from(echo.grant.number), 4)
        .number(echo.grant.fence.as_u64(), 7)
}

pub(super) fn issue(op: &Issue) -> Argv<'static> {
    let head = Packed::new()
        .bytes(op.subject.as_bytes())
        .time(op.not_after)
        .millis(op.ttl);
    Argv::new(head, None)
}

pub(super) fn refuse(op: &Refuse) -> Argv<'static> {
    let head = Packed::new().time(op.not_after).millis(op.expire);
    Argv::new(head, None)
}

pub(super) fn resolve(op: &Resolve) -> Argv<'_> {
    let (verdict, payload) = match &op.verdict {
        Verdict::Done(Some(result)) => (1, Some(&result[..])),
        Verdict::Done(None) => (2, None),
        Verdict::NotDone => (4, None),
    };
    let head = Packed::new()
        .byte(verdict)
        .byte(u8::from(op.force))
        .number(op.fence.as_u64(), 7);
    Argv::new(head, payload)
}

pub(super) fn forget(op: &Forget) -> Argv<'static> {
    let status = match op.status {
        Status::Processing => 0,
        Status::Success => 1,
        Status::Failed => 2,
        Status::Refused => 3,
        Status::Issued => 9,
        Status::Damaged => 15,
    };
    let head = Packed::new()
        .byte(status)
        .number(op.fence.as_u64(), 7)
        .byte(u8::from(op.release))
        .byte(u8::from(op.force));
    Argv::new(head, None)
}
