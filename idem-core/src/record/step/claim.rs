//! Taking a record.

use super::{has_waiters, mark_to_keep, prolonged};
use crate::record::{
    Claim, ClaimReply, Fence, Grant, OnAbandoned, Processing, Record, Slot, State, StoreTime,
};

/// What a claim at `now` makes of `slot`, and what it is answered.
#[must_use]
pub fn claim(slot: Slot, op: &Claim, now: StoreTime) -> (Slot, ClaimReply) {
    if now > op.not_after {
        return (slot, ClaimReply::Late);
    }
    let mut record = match slot.live(now) {
        Slot::Damaged => return (Slot::Damaged, ClaimReply::Damaged),
        Slot::Absent if op.token.is_some() => return (Slot::Absent, ClaimReply::TokenRejected),
        Slot::Absent => return grant(None, op, now, Takeover::No),
        Slot::Record(record) => record,
    };
    if record.token.map(|token| token.subject) != op.token {
        return (record.into(), ClaimReply::TokenRejected);
    }
    if record.fingerprint.is_some() && record.fingerprint != op.fingerprint {
        return (record.into(), ClaimReply::Mismatch);
    }
    if record.owner == op.owner {
        match &mut record.state {
            State::Processing(attempt) if !attempt.given_up => {
                attempt.lease_until = now.after(op.terms.lease);
                let reply = ClaimReply::Claimed(first_reply(&record));
                return (prolonged(record, &op.terms, now).into(), reply);
            }
            State::Processing(_) | State::Closed { .. } | State::Failed { .. } | State::Issued => {
                return (record.into(), ClaimReply::Closed);
            }
            State::Success { .. } | State::Refused => {}
        }
    }
    claim_by_state(record, op, now)
}

/// The rows of the table, once the claim is known to be in time and about the same request.
fn claim_by_state(mut record: Record, op: &Claim, now: StoreTime) -> (Slot, ClaimReply) {
    let takeover = match &mut record.state {
        State::Success { result, .. } => {
            let reply = ClaimReply::Completed {
                result: result.clone(),
            };
            return (record.into(), reply);
        }
        State::Failed {
            error: Some(error), ..
        } => {
            let reply = ClaimReply::FailedWith(error.clone());
            return (record.into(), reply);
        }
        State::Refused => return (record.into(), ClaimReply::Refused),
        State::Processing(attempt) if !attempt.lease_until.has_passed(now) => {
            attempt.waiters |= op.wait;
            let reply = ClaimReply::InProgress {
                since: attempt.since,
                lease_left: attempt.lease_until.since(now),
            };
            return (record.into(), reply);
        }
        State::Processing(attempt) if !attempt.checkpoint => Takeover::Clean,
        State::Processing(_) if op.recover => Takeover::ToRecover,
        State::Processing(_) if op.policy == OnAbandoned::Rerun => Takeover::InDoubt,
        State::Processing(_) => return (record.into(), ClaimReply::OutcomeUnknown),
        State::Failed { error: None, .. } | State::Issued | State::Closed { .. } => Takeover::No,
    };
    if was_sent_before(op, record.fence, now) {
        return (record.into(), ClaimReply::Late);
    }
    grant(Some(&record), op, now, takeover)
}

/// A copy of a claim that is older than the record it would replace: its attempt has ended since.
fn was_sent_before(op: &Claim, fence: Fence, now: StoreTime) -> bool {
    let begun = StoreTime::from_micros(fence.as_u64());
    op.not_after.before(op.terms.limit) < begun && begun <= now
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takeover {
    No,
    Clean,
    InDoubt,
    ToRecover,
}

fn grant(
    previous: Option<&Record>,
    op: &Claim,
    now: StoreTime,
    takeover: Takeover,
) -> (Slot, ClaimReply) {
    let checkpoint = op.checkpoint || takeover == Takeover::ToRecover;
    let attempt = Processing {
        since: now,
        lease_until: now.after(op.terms.lease),
        expire: op.terms.expire,
        policy: op.policy,
        checkpoint,
        takeover: takeover != Takeover::No,
        doubt: matches!(takeover, Takeover::InDoubt | Takeover::ToRecover),
        given_up: false,
        waiters: previous.is_some_and(has_waiters),
    };
    let record = Record {
        owner: op.owner,
        fence: previous
            .map_or(Fence::default(), |record| record.fence)
            .next(now),
        attempt: previous
            .map_or(0, |record| record.attempt)
            .saturating_add(1),
        fingerprint: op.fingerprint,
        token: previous.and_then(|record| record.token),
        closed_until: previous.and_then(|record| mark_to_keep(record, now)),
        state: State::Processing(attempt),
        expires_at: now
            .after(op.terms.keep(checkpoint, op.policy))
            .ceil_millis(),
    };
    let reply = ClaimReply::Claimed(first_reply(&record));
    (record.into(), reply)
}

/// What the claim of the attempt in `record` was told; kept in the record until it is settled.
fn first_reply(record: &Record) -> Grant {
    let attempt = match record.state {
        State::Processing(attempt) => Some(attempt),
        _ => None,
    };
    Grant {
        fence: record.fence,
        number: record.attempt,
        since: attempt.map_or_else(StoreTime::default, |attempt| attempt.since),
        takeover: attempt.is_some_and(|attempt| attempt.takeover),
        doubt: attempt.is_some_and(|attempt| attempt.doubt),
        token: record.token,
    }
}
