//! Protocols with one rule broken, made around the real verbs: a model that can not tell them from
//! the real one proves nothing.

use std::time::Duration;

use idem_core::record::{
    Claim, ClaimReply, Fence, Forget, Op, Outcome, Owner, Processing, Record, Renew, Reply,
    Resolve, Settle, SettleReply, Slot, State, StoreTime, step,
};

use crate::textbook::textbook;

/// Which rule is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it")]
pub enum Mutant {
    None,
    OwnerNotCompared,
    CheckpointNotCompared,
    OwnReplyNotRecognised,
    TakeoverFlagLostOnResend,
    NotAfterIgnored,
    ClosedClaimAccepted,
    /// Of the client: see `World::begins`.
    RecoverBeforeTheClaim,
    GiveUpDropsTheDoubt,
    AdoptedAtAnyAge,
    ForgetNotCompared,
    ResolveNotCompared,
    MarkShorterThanTheLimit,
    LeaseAsTtl,
    DeletedOnError,
    LiveLeaseTaken,
    LeaseUntilExpiry,
    FenceBeginsAgain,
    LeaseProlongedByDuplicates,
    SupersededIsSettled,
    RefusedInDoubt,
    RefusedBehindADoubt,
    Textbook,
}

impl Mutant {
    /// What this protocol's store does, in place of [`step`].
    pub(crate) fn act(self, slot: Slot, op: &Op, now: StoreTime) -> (Slot, Reply) {
        match self {
            Self::None | Self::RecoverBeforeTheClaim => step(slot, op, now),
            Self::Textbook => textbook(slot, op, now),
            _ => {
                let (before, op) = self.before(slot, op.clone(), now);
                let (slot, reply) = self.instead(&before, &op, now);
                self.after(&before, slot, &op, reply, now)
            }
        }
    }

    /// What it changes in record or operation before the real verb sees them.
    fn before(self, mut slot: Slot, mut op: Op, now: StoreTime) -> (Slot, Op) {
        let holder = match &slot {
            Slot::Record(record) => Some((record.owner, record.fence, record.state.status())),
            _ => None,
        };
        match (self, &mut op) {
            (
                Self::OwnerNotCompared,
                Op::Settle(Settle { owner, .. })
                | Op::Renew(Renew {
                    owner,
                    checkpoint: false,
                    ..
                }),
            )
            | (
                Self::CheckpointNotCompared,
                Op::Renew(Renew {
                    owner,
                    checkpoint: true,
                    ..
                }),
            ) if processing(&mut slot).is_some() => {
                *owner = holder.map_or(*owner, |(holder, ..)| holder);
            }
            (Self::OwnReplyNotRecognised, Op::Claim(Claim { owner, .. })) => {
                if let Slot::Record(record) = &mut slot
                    && record.owner == *owner
                {
                    record.owner = SOMEBODY;
                }
            }
            (
                Self::NotAfterIgnored,
                Op::Claim(Claim { not_after, .. })
                | Op::Renew(Renew { not_after, .. })
                | Op::Settle(Settle { not_after, .. }),
            ) => *not_after = now.after(Duration::from_hours(1)),
            (
                Self::GiveUpDropsTheDoubt,
                Op::Settle(Settle {
                    owner,
                    outcome: Outcome::GiveUp,
                    ..
                }),
            ) if holder.is_some_and(|(holder, ..)| holder == *owner) => {
                if let Some(attempt) = processing(&mut slot) {
                    attempt.doubt = false;
                }
            }
            (
                Self::AdoptedAtAnyAge,
                Op::Settle(Settle {
                    echo: Some(echo), ..
                })
                | Op::Renew(Renew { echo, .. }),
            ) => echo.answered = now,
            (Self::ForgetNotCompared, Op::Forget(Forget { fence, status, .. })) => {
                if let Some((_, is, Some(has))) = holder {
                    (*fence, *status) = (is, has);
                }
            }
            (Self::ResolveNotCompared, Op::Resolve(Resolve { fence, .. })) => {
                if let Some((_, is, _)) = holder {
                    *fence = is;
                }
            }
            (Self::LiveLeaseTaken, Op::Claim(Claim { owner, .. }))
                if holder.is_some_and(|(holder, ..)| holder != *owner) =>
            {
                if let Some(attempt) = processing(&mut slot) {
                    attempt.lease_until = now;
                }
            }
            (Self::RefusedInDoubt, Op::Refuse(_)) => {
                if let Some(attempt) = processing(&mut slot) {
                    attempt.checkpoint = false;
                }
            }
            (Self::RefusedBehindADoubt, Op::Refuse(_)) => {
                if let Some(attempt) = processing(&mut slot) {
                    attempt.takeover = false;
                }
            }
            _ => {}
        }
        (slot, op)
    }

    /// Rows of the table that it has in place of the real ones.
    fn instead(self, slot: &Slot, op: &Op, now: StoreTime) -> (Slot, Reply) {
        match (self, op) {
            (
                Self::DeletedOnError,
                Op::Settle(Settle {
                    outcome: Outcome::Failed,
                    not_after,
                    ..
                }),
            ) if now <= *not_after => (Slot::Absent, Reply::Settle(SettleReply::Settled)),
            _ => match step(slot.clone(), op, now) {
                (_, Reply::Claim(ClaimReply::Closed)) if self == Self::ClosedClaimAccepted => {
                    step(Slot::Absent, op, now)
                }
                done => done,
            },
        }
    }

    /// What it changes in the record that the real verb left, or in its reply.
    fn after(
        self,
        before: &Slot,
        mut slot: Slot,
        op: &Op,
        mut reply: Reply,
        now: StoreTime,
    ) -> (Slot, Reply) {
        let was_free = matches!(before.clone().visible(now), Slot::Absent);
        let Slot::Record(record) = &mut slot else {
            return (slot, reply);
        };
        match (self, op, &mut reply) {
            (Self::OwnReplyNotRecognised, Op::Claim(claim), _) if record.owner == SOMEBODY => {
                record.owner = claim.owner;
            }
            (Self::TakeoverFlagLostOnResend, _, Reply::Claim(ClaimReply::Claimed(grant))) if matches!(before, Slot::Record(before) if before.owner == record.owner) =>
            {
                (grant.takeover, grant.doubt) = (false, false);
            }
            (Self::MarkShorterThanTheLimit, Op::Settle(settle), _) => {
                shorten_mark(record, now.after(settle.terms.limit / 3));
            }
            (Self::LeaseAsTtl, _, _) => {
                if let State::Processing(attempt) = &record.state {
                    record.expires_at = attempt.lease_until.ceil_millis();
                }
            }
            (Self::LeaseUntilExpiry, Op::Claim(_) | Op::Renew(_), _) => {
                let until = record.expires_at;
                if let State::Processing(attempt) = &mut record.state {
                    attempt.lease_until = until;
                }
            }
            (Self::FenceBeginsAgain, _, Reply::Claim(ClaimReply::Claimed(grant))) if was_free => {
                record.fence = Fence::from_u64(1);
                grant.fence = record.fence;
            }
            (
                Self::LeaseProlongedByDuplicates,
                Op::Claim(claim),
                Reply::Claim(ClaimReply::InProgress { .. }),
            ) => {
                if let State::Processing(attempt) = &mut record.state {
                    attempt.lease_until = now.after(claim.terms.lease);
                }
            }
            (Self::SupersededIsSettled, _, Reply::Settle(reply)) => {
                if let SettleReply::Superseded { .. } = reply {
                    *reply = SettleReply::Settled;
                }
            }
            _ => {}
        }
        (slot, reply)
    }
}

fn processing(slot: &mut Slot) -> Option<&mut Processing> {
    match slot {
        Slot::Record(Record {
            state: State::Processing(attempt),
            ..
        }) => Some(attempt),
        _ => None,
    }
}

fn shorten_mark(record: &mut Record, until: StoreTime) {
    if record.state == (State::Closed { by_operator: false }) {
        record.expires_at = record.expires_at.min(until);
    }
}

const SOMEBODY: Owner = Owner::from_bytes([b'!'; 16]);
