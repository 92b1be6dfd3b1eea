//! What each operation does to a record, as one pure function of record, operation and time.
//!
//! Every verb checks in the same order: too late, damaged, then the record itself. The order and
//! the odd-looking conditions are no taste: each stands against a history in which somebody pays
//! twice or a key is held for nobody.

mod claim;
mod operator;
mod settle;

#[cfg(test)]
mod tests;

pub use claim::claim;
pub use operator::{forget, issue, refuse, resolve};
pub use settle::{renew, settle};

use std::time::Duration;

use super::{
    Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Record, Refuse, RefuseReply,
    Renew, RenewReply, Resolve, Settle, SettleReply, Slot, State, StoreTime, Terms,
};

/// Any operation on a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the operation of its name")]
pub enum Op {
    Claim(Claim),
    Renew(Renew),
    Settle(Settle),
    Issue(Issue),
    Forget(Forget),
    Resolve(Resolve),
    Refuse(Refuse),
}

/// The answer to an [`Op`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each variant is the reply to the operation of its name"
)]
pub enum Reply {
    Claim(ClaimReply),
    Renew(RenewReply),
    Settle(SettleReply),
    Issue(IssueReply),
    Forget(OperatorReply),
    Resolve(OperatorReply),
    Refuse(RefuseReply),
}

/// What `op` at `now` makes of `slot`, and what it answers: the specification of every store.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use idem_core::record::{
///     Claim, ClaimReply, OnAbandoned, Op, Owner, Reply, Slot, StoreTime, Terms, step,
/// };
///
/// let second = Duration::from_secs(1);
/// let terms = Terms { lease: 30 * second, expire: 600 * second, doubt: 600 * second, limit: second };
/// let now = StoreTime::from_micros(1_000_000);
/// let claim = |owner| Op::Claim(Claim {
///     owner: Owner::from_bytes([owner; 16]),
///     terms,
///     fingerprint: None,
///     policy: OnAbandoned::Hold,
///     checkpoint: true,
///     token: None,
///     recover: false,
///     wait: false,
///     not_after: now.after(second),
/// });
///
/// let (slot, reply) = step(Slot::Absent, &claim(1), now);
/// assert!(matches!(reply, Reply::Claim(ClaimReply::Claimed(grant)) if grant.number == 1));
/// let (_, reply) = step(slot, &claim(2), now);
/// assert!(matches!(reply, Reply::Claim(ClaimReply::InProgress { .. })));
/// ```
#[must_use]
pub fn step(slot: Slot, op: &Op, now: StoreTime) -> (Slot, Reply) {
    fn wrap<R>((slot, reply): (Slot, R), kind: fn(R) -> Reply) -> (Slot, Reply) {
        (slot, kind(reply))
    }
    match op {
        Op::Claim(op) => wrap(claim(slot, op, now), Reply::Claim),
        Op::Renew(op) => wrap(renew(slot, op, now), Reply::Renew),
        Op::Settle(op) => wrap(settle(slot, op, now), Reply::Settle),
        Op::Issue(op) => wrap(issue(slot, *op, now), Reply::Issue),
        Op::Forget(op) => wrap(forget(slot, *op, now), Reply::Forget),
        Op::Resolve(op) => wrap(resolve(slot, op, now), Reply::Resolve),
        Op::Refuse(op) => wrap(refuse(slot, *op, now), Reply::Refuse),
    }
}

/// The record at its end, kept for `expire`.
fn finished(mut record: Record, state: State, expire: Duration, now: StoreTime) -> Slot {
    record.closed_until = mark_to_keep(&record, now);
    record.state = state;
    record.expires_at = now.after(expire).ceil_millis();
    record.into()
}

/// What is left of an ended attempt: owner and fence.
fn mark(record: &Record, by_operator: bool, until: StoreTime, now: StoreTime) -> Slot {
    let kept = mark_to_keep(record, now).unwrap_or_default();
    Slot::Record(Record {
        owner: record.owner,
        fence: record.fence,
        attempt: 0,
        fingerprint: None,
        token: None,
        closed_until: None,
        state: State::Closed { by_operator },
        expires_at: until.max(kept),
    })
}

/// Until when a mark on this key has to stay, whoever claims it in between.
fn mark_to_keep(record: &Record, now: StoreTime) -> Option<StoreTime> {
    match record.state {
        State::Closed { .. } => Some(record.expires_at),
        _ => record.closed_until.filter(|until| !until.has_passed(now)),
    }
}

/// The record with its TTL set anew, as each answered write of its owner does.
fn prolonged(mut record: Record, terms: &Terms, now: StoreTime) -> Record {
    if let State::Processing(attempt) = &record.state {
        let keep = terms.keep(attempt.checkpoint, attempt.policy);
        record.expires_at = now.after(keep).ceil_millis();
    }
    record
}

fn has_waiters(record: &Record) -> bool {
    matches!(&record.state, State::Processing(attempt) if attempt.waiters)
}

impl Slot {
    /// The slot as it is at `now`: a record that has expired is absent, purged or not.
    #[must_use]
    pub fn live(self, now: StoreTime) -> Self {
        match self {
            Self::Record(record) if record.expires_at.has_passed(now) => Self::Absent,
            other => other,
        }
    }

    /// The slot as everybody but an ended attempt's owner sees it: a closed mark is absent.
    #[must_use]
    pub fn visible(self, now: StoreTime) -> Self {
        match self.live(now) {
            Self::Record(Record {
                state: State::Closed { .. },
                ..
            }) => Self::Absent,
            other => other,
        }
    }

    /// Whether somebody waits for the end of the attempt in it.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        matches!(self, Self::Record(record) if has_waiters(record))
    }
}

impl From<Record> for Slot {
    fn from(record: Record) -> Self {
        Self::Record(record)
    }
}
