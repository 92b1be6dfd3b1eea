//! What tutorials show: SET NX before the body, SET after it, DEL when it failed. Nobody asks whose
//! key it is by then.

use idem_core::record::{
    Op, Outcome, Owner, RenewReply, Reply, SettleReply, Slot, State, StoreTime, step,
};

pub(crate) fn textbook(slot: Slot, op: &Op, now: StoreTime) -> (Slot, Reply) {
    match op {
        Op::Claim(claim) => {
            let (slot, reply) = match slot.visible(now) {
                Slot::Record(mut record) => {
                    record.owner = Owner::NOBODY;
                    step(Slot::Record(record), op, now)
                }
                free => step(free, op, now),
            };
            let slot = match slot {
                Slot::Record(mut record) => {
                    if let State::Processing(_) = record.state {
                        record.expires_at = record.expires_at.min(now.after(claim.terms.lease));
                    }
                    record.into()
                }
                other => other,
            };
            (slot, reply)
        }
        Op::Settle(settle) => {
            let settled = Reply::Settle(SettleReply::Settled);
            let Slot::Record(mut record) = slot else {
                return (slot, settled);
            };
            match &settle.outcome {
                Outcome::Success(result) => {
                    record.state = State::Success {
                        at: now,
                        result: result.clone(),
                    };
                    record.expires_at = now.after(settle.terms.expire);
                    (record.into(), settled)
                }
                _ => (Slot::Absent, settled),
            }
        }
        Op::Renew(_) => (slot, Reply::Renew(RenewReply::Lost)),
        _ => step(slot, op, now),
    }
}
