//! What a script answers: one packed string, decoded here and nowhere else.
//!
//! The first byte is the kind, the next seven are the store's time in µs; the rest belongs to the
//! kind. Anything unknown is a [`StoreErrorKind::Protocol`] error, never a permission.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

use std::time::Duration;

use bytes::{Buf, Bytes, TryGetError};

use crate::error::{StoreError, StoreErrorKind};
use crate::record::{
    ClaimReply, Current, Fence, Grant, IssueReply, OperatorReply, RefuseReply, RenewReply,
    SettleReply, StoreTime, Subject, TokenBinding,
};
use crate::store::Answer;

const TIME: usize = 7;

/// Every answer of every script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// `C`
    Claimed(Grant),
    /// `P`
    InProgress {
        since: StoreTime,
        lease_left: Duration,
    },
    /// `S` with a result, `s` without.
    Success(Option<Bytes>),
    /// `F`
    FailedWith(Bytes),
    /// `U`
    OutcomeUnknown,
    /// `X`
    Refused,
    /// `M`
    Mismatch,
    /// `T`
    TokenRejected,
    /// `E`
    Ended,
    /// `R`
    Renewed,
    /// `B`
    Rebuilt,
    /// `G`
    Lost,
    /// `K`
    Settled,
    /// `A`
    Adopted,
    /// `V`
    Superseded(Current),
    /// `I`
    Issued,
    /// `O`
    Taken,
    /// `Y`
    Done,
    /// `Z`
    Changed,
    /// `Q`: what [`format`](crate::record::format) decodes.
    Record { expires_at: StoreTime, bytes: Bytes },
    /// `N`
    Nothing,
    /// `L`
    Late,
    /// `D`
    Damaged,
}

/// The answer in `bytes`.
pub(super) fn decode(bytes: Vec<u8>) -> Result<Answer<Reply>, StoreError> {
    let mut bytes = Bytes::from(bytes);
    read(&mut bytes).map_err(|Unreadable| {
        StoreError::new(
            StoreErrorKind::Protocol,
            "redis: a script answered something that this version does not know",
        )
    })
}

struct Unreadable;

impl From<TryGetError> for Unreadable {
    fn from(_: TryGetError) -> Self {
        Self
    }
}

fn read(bytes: &mut Bytes) -> Result<Answer<Reply>, Unreadable> {
    let kind = bytes.try_get_u8()?;
    let now = time(bytes)?;
    let reply = match kind {
        b'C' => Reply::Claimed(grant(bytes)?),
        b'P' => Reply::InProgress {
            since: time(bytes)?,
            lease_left: time(bytes)?.since(now),
        },
        b'S' => Reply::Success(Some(rest(bytes))),
        b's' => Reply::Success(None),
        b'F' => Reply::FailedWith(rest(bytes)),
        b'U' => Reply::OutcomeUnknown,
        b'X' => Reply::Refused,
        b'M' => Reply::Mismatch,
        b'T' => Reply::TokenRejected,
        b'E' => Reply::Ended,
        b'R' => Reply::Renewed,
        b'B' => Reply::Rebuilt,
        b'G' => Reply::Lost,
        b'K' => Reply::Settled,
        b'A' => Reply::Adopted,
        b'V' => Reply::Superseded(current(bytes)?),
        b'I' => Reply::Issued,
        b'O' => Reply::Taken,
        b'Y' => Reply::Done,
        b'Z' => Reply::Changed,
        b'Q' => Reply::Record {
            expires_at: time(bytes)?,
            bytes: rest(bytes),
        },
        b'N' => Reply::Nothing,
        b'L' => Reply::Late,
        b'D' => Reply::Damaged,
        _ => return Err(Unreadable),
    };
    if bytes.has_remaining() {
        return Err(Unreadable);
    }
    Ok(Answer { now, reply })
}

fn time(bytes: &mut Bytes) -> Result<StoreTime, TryGetError> {
    Ok(StoreTime::from_micros(bytes.try_get_uint(TIME)?))
}

fn rest(bytes: &mut Bytes) -> Bytes {
    std::mem::take(bytes)
}

fn grant(bytes: &mut Bytes) -> Result<Grant, Unreadable> {
    let fence = Fence::from_u64(bytes.try_get_uint(TIME)?);
    let number = bytes.try_get_u32()?;
    let since = time(bytes)?;
    let marks = bytes.try_get_u8()?;
    let token = bytes.has_remaining().then(|| token(bytes)).transpose()?;
    Ok(Grant {
        fence,
        number,
        since,
        takeover: marks & 2 != 0,
        doubt: marks & 4 != 0,
        token,
    })
}

fn token(bytes: &mut Bytes) -> Result<TokenBinding, Unreadable> {
    let mut subject = [0; 16];
    bytes.try_copy_to_slice(&mut subject)?;
    Ok(TokenBinding {
        subject: Subject::from_bytes(subject),
        until: time(bytes)?,
    })
}

fn current(bytes: &mut Bytes) -> Result<Current, Unreadable> {
    Ok(match bytes.try_get_u8()? {
        0 => Current::Nothing,
        1 => Current::Processing,
        2 => Current::Success {
            result: Some(rest(bytes)),
        },
        3 => Current::Success { result: None },
        4 => Current::Failed,
        5 => Current::Issued,
        6 => Current::Refused,
        _ => return Err(Unreadable),
    })
}

impl Answer<Reply> {
    /// The answer as one of the verb's own.
    pub(super) fn into_verb<R: TryFrom<Reply, Error = Unexpected>>(
        self,
    ) -> Result<Answer<R>, StoreError> {
        let reply = R::try_from(self.reply).map_err(|Unexpected| of_another_script())?;
        Ok(Answer {
            now: self.now,
            reply,
        })
    }
}

pub(super) fn of_another_script() -> StoreError {
    StoreError::new(
        StoreErrorKind::Protocol,
        "redis: a script answered with the reply of another one",
    )
}

/// A reply that the verb does not have.
#[derive(Debug)]
pub(super) struct Unexpected;

impl TryFrom<Reply> for ClaimReply {
    type Error = Unexpected;

    fn try_from(reply: Reply) -> Result<Self, Unexpected> {
        Ok(match reply {
            Reply::Claimed(grant) => Self::Claimed(grant),
            Reply::InProgress { since, lease_left } => Self::InProgress { since, lease_left },
            Reply::Success(result) => Self::Completed { result },
            Reply::FailedWith(error) => Self::FailedWith(error),
            Reply::OutcomeUnknown => Self::OutcomeUnknown,
            Reply::Refused => Self::Refused,
            Reply::Mismatch => Self::Mismatch,
            Reply::TokenRejected => Self::TokenRejected,
            Reply::Ended => Self::Closed,
            Reply::Late => Self::Late,
            Reply::Damaged => Self::Damaged,
            _ => return Err(Unexpected),
        })
    }
}

impl TryFrom<Reply> for RenewReply {
    type Error = Unexpected;

    fn try_from(reply: Reply) -> Result<Self, Unexpected> {
        Ok(match reply {
            Reply::Renewed => Self::Renewed { rebuilt: false },
            Reply::Rebuilt => Self::Renewed { rebuilt: true },
            Reply::Lost | Reply::Nothing => Self::Lost,
            Reply::Late => Self::Late,
            Reply::Damaged => Self::Damaged,
            _ => return Err(Unexpected),
        })
    }
}

impl TryFrom<Reply> for SettleReply {
    type Error = Unexpected;

    fn try_from(reply: Reply) -> Result<Self, Unexpected> {
        Ok(match reply {
            Reply::Settled => Self::Settled,
            Reply::Adopted => Self::Adopted,
            Reply::Superseded(current) => Self::Superseded { current },
            Reply::Nothing => Self::Superseded {
                current: Current::Nothing,
            },
            Reply::Late => Self::Late,
            Reply::Damaged => Self::Damaged,
            _ => return Err(Unexpected),
        })
    }
}

impl TryFrom<Reply> for IssueReply {
    type Error = Unexpected;

    fn try_from(reply: Reply) -> Result<Self, Unexpected> {
        Ok(match reply {
            Reply::Issued => Self::Issued,
            Reply::Taken => Self::Taken,
            Reply::Late => Self::Late,
            Reply::Damaged => Self::Damaged,
            _ => return Err(Unexpected),
        })
    }
}

impl TryFrom<Reply> for OperatorReply {
    type Error = Unexpected;

    fn try_from(reply: Reply) -> Result<Self, Unexpected> {
        Ok(match reply {
            Reply::Done => Self::Done,
            Reply::Changed => Self::Changed,
            _ => return Err(Unexpected),
        })
    }
}

impl TryFrom<Reply> for RefuseReply {
    type Error = Unexpected;

    fn try_from(reply: Reply) -> Result<Self, Unexpected> {
        Ok(match reply {
            Reply::Refused => Self::Refused,
            Reply::InProgress { since, lease_left } => Self::InProgress { since, lease_left },
            Reply::OutcomeUnknown => Self::OutcomeUnknown,
            Reply::Success(result) => Self::Completed { result },
            Reply::FailedWith(error) => Self::FailedWith(error),
            Reply::TokenRejected => Self::TokenRejected,
            Reply::Late => Self::Late,
            Reply::Damaged => Self::Damaged,
            _ => return Err(Unexpected),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply of this kind, with the rest of its bytes.
    fn bytes(kind: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, 0, 0, 0, 0, 0, 0, 9];
        bytes.extend_from_slice(rest);
        bytes
    }

    fn kind_of_error<T: std::fmt::Debug>(result: Result<T, StoreError>) -> StoreErrorKind {
        result.unwrap_err().kind()
    }

    // CASES N04
    #[test]
    fn a_kind_that_is_not_known_is_an_error() {
        let known = b"CPSsFUXMTERBGKAVIOYZQNLD";
        for kind in (0..=u8::MAX).filter(|kind| !known.contains(kind)) {
            let decoded = decode(bytes(kind, &[]));
            assert_eq!(kind_of_error(decoded), StoreErrorKind::Protocol, "{kind}");
        }
    }

    #[test]
    fn a_reply_that_ends_too_early_is_an_error() {
        for kind in *b"CPQV" {
            let decoded = decode(bytes(kind, &[]));
            assert_eq!(kind_of_error(decoded), StoreErrorKind::Protocol);
        }
        assert_eq!(
            kind_of_error(decode(vec![b'K', 0])),
            StoreErrorKind::Protocol
        );
        assert_eq!(kind_of_error(decode(Vec::new())), StoreErrorKind::Protocol);
    }

    #[test]
    fn a_reply_that_goes_on_behind_its_end_is_an_error() {
        for kind in *b"sUXMTERBGKAIOYZNLD" {
            let decoded = decode(bytes(kind, &[1]));
            assert_eq!(kind_of_error(decoded), StoreErrorKind::Protocol);
        }
    }

    // CASES N04
    #[test]
    fn the_reply_of_another_script_is_no_permission() {
        let settled = || decode(bytes(b'K', &[])).unwrap();
        assert!(settled().into_verb::<SettleReply>().is_ok());
        let kinds = [
            kind_of_error(settled().into_verb::<ClaimReply>()),
            kind_of_error(settled().into_verb::<RenewReply>()),
            kind_of_error(settled().into_verb::<IssueReply>()),
            kind_of_error(settled().into_verb::<RefuseReply>()),
            kind_of_error(settled().into_verb::<OperatorReply>()),
        ];
        assert_eq!(kinds, [StoreErrorKind::Protocol; 5]);
    }

    #[test]
    fn a_result_may_be_empty_and_hold_any_bytes() {
        for result in [&b""[..], b"\0\r\n$-1\r\n"] {
            let answer = decode(bytes(b'S', result)).unwrap();
            assert_eq!(answer.now, StoreTime::from_micros(9));
            assert_eq!(answer.reply, Reply::Success(Some(Bytes::from(result))));
        }
    }
}
