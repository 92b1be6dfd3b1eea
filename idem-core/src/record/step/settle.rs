//! Keeping a record and finishing it.

use super::{finished, mark, mark_to_keep, prolonged};
use crate::record::{
    Current, Echo, Outcome, Processing, Record, Renew, RenewReply, Settle, SettleReply, Slot,
    State, StoreTime, Terms, TokenBinding,
};

/// What a renewal or a checkpoint at `now` makes of `slot`, and what it is answered.
#[must_use]
pub fn renew(slot: Slot, op: &Renew, now: StoreTime) -> (Slot, RenewReply) {
    if now > op.not_after {
        return (slot, RenewReply::Late);
    }
    let mut record = match slot.live(now) {
        Slot::Damaged => return (Slot::Damaged, RenewReply::Damaged),
        Slot::Absent
            if !op.checkpoint && op.echo.checkpoint && op.echo.is_young(&op.terms, now) =>
        {
            let record = rebuilt(op, now);
            return (record.into(), RenewReply::Renewed { rebuilt: true });
        }
        Slot::Absent => return (Slot::Absent, RenewReply::Lost),
        Slot::Record(record) => record,
    };
    match &mut record.state {
        State::Processing(attempt) if record.owner == op.owner && !attempt.given_up => {
            attempt.lease_until = now.after(op.terms.lease);
            attempt.checkpoint |= op.checkpoint;
            let record = prolonged(record, &op.terms, now);
            (record.into(), RenewReply::Renewed { rebuilt: false })
        }
        _ => (record.into(), RenewReply::Lost),
    }
}

/// The record of an attempt whose store lost it, from what its owner knows.
fn rebuilt(op: &Renew, now: StoreTime) -> Record {
    let Echo {
        grant,
        checkpoint,
        policy,
        fingerprint,
        ..
    } = &op.echo;
    Record {
        owner: op.owner,
        fence: grant.fence,
        attempt: grant.number,
        fingerprint: *fingerprint,
        token: grant.token,
        closed_until: None,
        state: State::Processing(Processing {
            since: grant.since,
            lease_until: now.after(op.terms.lease),
            expire: op.terms.expire,
            policy: *policy,
            checkpoint: *checkpoint,
            takeover: grant.takeover,
            doubt: grant.doubt,
            given_up: false,
            waiters: false,
        }),
        expires_at: now.after(op.terms.keep(*checkpoint, *policy)).ceil_millis(),
    }
}

impl Echo {
    /// An owner that was not answered for as long as a record lives knows nothing any more: its
    /// record may have been finished by others, have expired and been forgotten.
    fn is_young(&self, terms: &Terms, now: StoreTime) -> bool {
        now.since(self.answered) < terms.expire
    }
}

/// What the end of an attempt at `now` makes of `slot`, and what it is answered.
#[must_use]
pub fn settle(slot: Slot, op: &Settle, now: StoreTime) -> (Slot, SettleReply) {
    if now > op.not_after {
        return (slot, SettleReply::Late);
    }
    let record = match slot.live(now) {
        Slot::Damaged => return (Slot::Damaged, SettleReply::Damaged),
        Slot::Absent => return adopt(op, now),
        Slot::Record(record) => record,
    };
    if record.owner != op.owner {
        return superseded(record);
    }
    match record.state {
        State::Processing(attempt) => settle_processing(record, attempt, op, now),
        State::Closed { by_operator: false } => (record.into(), SettleReply::Settled),
        _ if was_settled_so(&record, &op.outcome) => (record.into(), SettleReply::Settled),
        _ => superseded(record),
    }
}

fn adopt(op: &Settle, now: StoreTime) -> (Slot, SettleReply) {
    match (&op.outcome, &op.echo) {
        (Outcome::Success(result), Some(echo)) if echo.is_young(&op.terms, now) => {
            let record = Record {
                owner: op.owner,
                fence: echo.grant.fence,
                attempt: echo.grant.number,
                fingerprint: echo.fingerprint,
                token: echo.grant.token,
                closed_until: None,
                state: State::Success {
                    at: now,
                    result: result.clone(),
                },
                expires_at: now.after(op.terms.expire).ceil_millis(),
            };
            (record.into(), SettleReply::Adopted)
        }
        _ => (
            Slot::Absent,
            SettleReply::Superseded {
                current: Current::Nothing,
            },
        ),
    }
}

fn settle_processing(
    mut record: Record,
    mut attempt: Processing,
    op: &Settle,
    now: StoreTime,
) -> (Slot, SettleReply) {
    if attempt.given_up {
        match op.outcome {
            Outcome::Success(_) | Outcome::SuccessForget => {}
            Outcome::Abandon | Outcome::GiveUp => return (record.into(), SettleReply::Settled),
            Outcome::Failed | Outcome::FailedWith(_) | Outcome::Release => {
                return superseded(record);
            }
        }
    }
    let slot = match &op.outcome {
        Outcome::Success(result) => finished(
            record,
            State::Success {
                at: now,
                result: result.clone(),
            },
            op.terms.expire,
            now,
        ),
        Outcome::FailedWith(error) => {
            let error = Some(error.clone());
            finished(
                record,
                State::Failed { at: now, error },
                op.terms.expire,
                now,
            )
        }
        Outcome::Failed => match record.token {
            Some(token) => issued_again(record, token, &op.terms, now),
            None => finished(
                record,
                State::Failed {
                    at: now,
                    error: None,
                },
                op.terms.expire,
                now,
            ),
        },
        Outcome::SuccessForget => closed(&record, &op.terms, now),
        Outcome::Abandon => given_up(record, attempt, &op.terms, now),
        Outcome::GiveUp if attempt.doubt => {
            attempt.checkpoint = true;
            given_up(record, attempt, &op.terms, now)
        }
        Outcome::Release | Outcome::GiveUp => match record.token.take() {
            Some(token) => issued_again(record, token, &op.terms, now),
            None => closed(&record, &op.terms, now),
        },
    };
    (slot, SettleReply::Settled)
}

fn given_up(mut record: Record, mut attempt: Processing, terms: &Terms, now: StoreTime) -> Slot {
    attempt.lease_until = now;
    attempt.given_up = true;
    record.state = State::Processing(attempt);
    prolonged(record, terms, now).into()
}

/// A token handed back by a body that did not use it. It keeps its own deadline, and takes a
/// corrected form. One whose time has run out is only closed.
fn issued_again(mut record: Record, token: TokenBinding, terms: &Terms, now: StoreTime) -> Slot {
    if token.until.has_passed(now) {
        return closed(&record, terms, now);
    }
    record.closed_until = mark_to_keep(&record, now);
    record.token = Some(token);
    record.fingerprint = None;
    record.state = State::Issued;
    record.expires_at = token.until;
    record.into()
}

fn closed(record: &Record, terms: &Terms, now: StoreTime) -> Slot {
    let until = now.after(terms.mark()).ceil_millis();
    mark(record, false, until, now)
}

fn was_settled_so(record: &Record, outcome: &Outcome) -> bool {
    match (&record.state, outcome) {
        (State::Success { result, .. }, Outcome::Success(again)) => result == again,
        (State::Failed { error, .. }, Outcome::FailedWith(again)) => error.as_ref() == Some(again),
        (State::Failed { error, .. }, Outcome::Failed) => error.is_none(),
        (State::Issued, Outcome::Failed | Outcome::Release | Outcome::GiveUp) => true,
        _ => false,
    }
}

fn superseded(record: Record) -> (Slot, SettleReply) {
    let current = match &record.state {
        State::Processing(_) => Current::Processing,
        State::Success { result, .. } => Current::Success {
            result: result.clone(),
        },
        State::Failed { .. } => Current::Failed,
        State::Issued => Current::Issued,
        State::Refused => Current::Refused,
        State::Closed { .. } => Current::Nothing,
    };
    (record.into(), SettleReply::Superseded { current })
}
