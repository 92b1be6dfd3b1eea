//! What comes from outside an attempt: tokens, operators, refusals.

use super::{finished, mark, mark_to_keep};
use crate::record::{
    Fence, Forget, Issue, IssueReply, OnAbandoned, OperatorReply, Owner, Processing, Record,
    Refuse, RefuseReply, Resolve, Slot, State, Status, StoreTime, TokenBinding, Verdict,
};

/// What the issue of a token at `now` makes of `slot`, and what it is answered.
#[must_use]
pub fn issue(slot: Slot, op: Issue, now: StoreTime) -> (Slot, IssueReply) {
    if now > op.not_after {
        return (slot, IssueReply::Late);
    }
    match slot.live(now) {
        Slot::Damaged => (Slot::Damaged, IssueReply::Damaged),
        Slot::Record(record) => {
            let is_the_same = record.state == State::Issued
                && record
                    .token
                    .is_some_and(|token| token.subject == op.subject);
            let reply = if is_the_same {
                IssueReply::Issued
            } else {
                IssueReply::Taken
            };
            (record.into(), reply)
        }
        Slot::Absent => {
            let until = now.after(op.ttl).ceil_millis();
            let record = Record {
                owner: Owner::NOBODY,
                fence: Fence::default().next(now),
                attempt: 0,
                fingerprint: None,
                token: Some(TokenBinding {
                    subject: op.subject,
                    until,
                }),
                closed_until: None,
                state: State::Issued,
                expires_at: until,
            };
            (record.into(), IssueReply::Issued)
        }
    }
}

/// What an operator's forget or release at `now` makes of `slot`, and what it is answered.
#[must_use]
pub fn forget(slot: Slot, op: Forget, now: StoreTime) -> (Slot, OperatorReply) {
    let record = match slot.live(now) {
        Slot::Damaged if op.force && op.status == Status::Damaged => {
            return (Slot::Absent, OperatorReply::Done);
        }
        Slot::Record(record) if record.fence == op.fence => record,
        other => return (other, OperatorReply::Changed),
    };
    if record.state == (State::Closed { by_operator: true }) {
        return (record.into(), OperatorReply::Done);
    }
    let is_as_read = record.state.status() == Some(op.status);
    let is_kept = match &record.state {
        State::Processing(attempt) => !attempt.lease_until.has_passed(now) && !op.force,
        State::Success { .. } => op.release,
        _ => false,
    };
    if !is_as_read || is_kept {
        return (record.into(), OperatorReply::Changed);
    }
    let until = record.expires_at;
    (mark(&record, true, until, now), OperatorReply::Done)
}

/// What an operator's verdict at `now` makes of `slot`, and what it is answered.
#[must_use]
pub fn resolve(slot: Slot, op: &Resolve, now: StoreTime) -> (Slot, OperatorReply) {
    let (record, attempt) = match slot.live(now) {
        Slot::Record(record) if record.fence == op.fence => match record.state {
            State::Processing(attempt) => (record, attempt),
            _ => return (record.into(), OperatorReply::Changed),
        },
        other => return (other, OperatorReply::Changed),
    };
    if !attempt.lease_until.has_passed(now) && !op.force {
        return (record.into(), OperatorReply::Changed);
    }
    let state = match &op.verdict {
        Verdict::Done(result) => State::Success {
            at: now,
            result: result.clone(),
        },
        Verdict::NotDone => State::Failed {
            at: now,
            error: None,
        },
    };
    (
        finished(record, state, attempt.expire, now),
        OperatorReply::Done,
    )
}

/// What a refusal at `now` makes of `slot`, and what it is answered.
#[must_use]
pub fn refuse(slot: Slot, op: Refuse, now: StoreTime) -> (Slot, RefuseReply) {
    if now > op.not_after {
        return (slot, RefuseReply::Late);
    }
    let previous = match slot.live(now) {
        Slot::Damaged => return (Slot::Damaged, RefuseReply::Damaged),
        Slot::Absent => None,
        Slot::Record(record) => match refuse_by_state(&record, now) {
            Some(reply) => return (record.into(), reply),
            None => Some(record),
        },
    };
    let record = Record {
        owner: Owner::NOBODY,
        fence: previous
            .as_ref()
            .map_or(Fence::default(), |record| record.fence)
            .next(now),
        attempt: 0,
        fingerprint: None,
        token: None,
        closed_until: previous
            .as_ref()
            .and_then(|record| mark_to_keep(record, now)),
        state: State::Refused,
        expires_at: now.after(op.expire).ceil_millis(),
    };
    (record.into(), RefuseReply::Refused)
}

/// What stands in the way of a refusal. An attempt that died before its checkpoint does not: as
/// with a takeover, its owner's checkpoint will be refused.
fn refuse_by_state(record: &Record, now: StoreTime) -> Option<RefuseReply> {
    match &record.state {
        _ if record.token.is_some() => Some(RefuseReply::TokenRejected),
        State::Processing(attempt) if !attempt.lease_until.has_passed(now) => {
            Some(RefuseReply::InProgress {
                since: attempt.since,
                lease_left: attempt.lease_until.since(now),
            })
        }
        State::Processing(attempt) if attempt.checkpoint || may_follow_a_doubt(attempt) => {
            Some(RefuseReply::OutcomeUnknown)
        }
        State::Success { result, .. } => Some(RefuseReply::Completed {
            result: result.clone(),
        }),
        State::Failed {
            error: Some(error), ..
        } => Some(RefuseReply::FailedWith(error.clone())),
        State::Refused => Some(RefuseReply::Refused),
        State::Processing(_)
        | State::Failed { error: None, .. }
        | State::Issued
        | State::Closed { .. } => None,
    }
}

/// Whether it may have taken over what had passed its checkpoint: at rerun that is taken, too, and
/// each further takeover knows of the last one only.
fn may_follow_a_doubt(attempt: &Processing) -> bool {
    attempt.takeover && attempt.policy == OnAbandoned::Rerun
}
