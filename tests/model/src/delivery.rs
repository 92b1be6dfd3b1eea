//! A packet arrives: the real `step` answers, and the ledger learns what is so now.

use bytes::Bytes;
use idem_core::record::{
    ClaimReply, Current, OnAbandoned, RenewReply, Reply as Replied, SettleReply, Slot, State,
    StoreTime,
};

use crate::attempt::{Answer, End, Packet, Reply, Says, Told, result_of};
use crate::laws::Law;
use crate::plan::{LEASE, MOMENT, Plan};
use crate::world::{World, owner};

/// What becomes of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Nobody hears it.
    Lost,
    /// Its caller hears it at once.
    Now,
    /// …or at some later moment.
    Later,
}

impl World {
    pub(crate) fn packet_arrives(&mut self, plan: &Plan, from: usize, index: usize, heard: Heard) {
        let packet = self.attempts[from].sent[index];
        let at = self.now.after(MOMENT);
        let op = Self::operation(plan, from, &packet);
        if !plan.copies {
            self.attempts[from].arrived |= 1 << index;
        }
        let is_its_own = self.is_processed_for(from);
        let replied = self.acts(plan, &op, at);
        if let Replied::Claim(reply) = &replied
            && is_its_own
            && !matches!(reply, ClaimReply::Claimed(_) | ClaimReply::Late)
        {
            self.breaks(Law::Nine);
        }
        self.learns(plan, from, &packet, &replied, at);
        let reply = Reply {
            to: packet,
            at,
            answer: answer(&replied),
        };
        match heard {
            Heard::Lost => {}
            Heard::Now => self.reply_arrives(plan, from, &reply),
            Heard::Later => {
                self.ledger.slow_replies += 1;
                self.attempts[from].slow.push(reply);
            }
        }
    }

    pub(crate) fn reply_arrives(&mut self, plan: &Plan, to: usize, reply: &Reply) {
        if self.attempts[to].listens_to(&reply.to) {
            self.hears(plan, to, reply);
        }
    }

    fn is_processed_for(&self, i: usize) -> bool {
        self.processing()
            .is_some_and(|(record, attempt)| record.owner == owner(i) && !attempt.given_up)
    }

    fn learns(&mut self, plan: &Plan, i: usize, packet: &Packet, reply: &Replied, at: StoreTime) {
        match (packet.says, reply) {
            (_, Replied::Claim(ClaimReply::Claimed(grant))) => {
                self.learns_of_a_grant(i, Told::from_grant(grant), at);
            }
            (_, Replied::Claim(ClaimReply::Completed { result })) => {
                self.compares(result.as_ref(), at);
            }
            (_, Replied::Renew(RenewReply::Renewed { .. })) => {
                self.attempts[i].truth.lease_until = at.after(LEASE);
            }
            (
                Says::Settle(end, _),
                Replied::Settle(reply @ (SettleReply::Settled | SettleReply::Adopted)),
            ) => self.learns_of_an_end(plan, i, end, *reply == SettleReply::Settled),
            (
                _,
                Replied::Settle(SettleReply::Superseded {
                    current: Current::Success { result },
                }),
            ) => self.compares(result.as_ref(), at),
            _ => {}
        }
    }

    fn learns_of_a_grant(&mut self, i: usize, told: Told, at: StoreTime) {
        let is_unlike_before = self.attempts[i]
            .truth
            .granted
            .is_some_and(|first| first != told);
        let has_ended = self.attempts[i].truth.has_ended;
        if (is_unlike_before || has_ended) && !self.has_lost() {
            self.breaks(Law::Nine);
        }
        let truth = &mut self.attempts[i].truth;
        truth.lease_until = at.after(LEASE);
        if truth.granted == Some(told) {
            return;
        }
        truth.granted = Some(told);
        truth.has_ended = false;
        if told.fence <= self.ledger.highest {
            self.breaks(Law::Six);
        }
        self.ledger.highest = told.fence.max(self.ledger.highest);
        self.now = at;
    }

    fn learns_of_an_end(&mut self, plan: &Plan, i: usize, end: End, was_ours: bool) {
        let truth = &mut self.attempts[i].truth;
        truth.has_ended = true;
        match end {
            End::Fail | End::Release => {
                truth.is_excused |= was_ours;
                // A body that runs again speaks for those before it, too.
                if was_ours
                    && plan.policy == OnAbandoned::Rerun
                    && let Some(granted) = truth.granted
                {
                    for earlier in self.granted_up_to(granted.fence) {
                        earlier.truth.is_excused = true;
                    }
                }
            }
            End::Ok(whose) => {
                if success_in(&self.slot) != Some(&result_of(whose)) {
                    self.breaks(Law::Three);
                }
            }
            End::Abandon | End::GiveUp => {}
        }
    }

    /// Law 3: a replay is what the winner committed.
    fn compares(&mut self, result: Option<&Bytes>, at: StoreTime) {
        if let Some(success) = self.ledger.success
            && at < success.until
            && result != Some(&result_of(success.whose))
        {
            self.breaks(Law::Three);
        }
    }
}

pub(crate) fn success_in(slot: &Slot) -> Option<&Bytes> {
    match slot {
        Slot::Record(record) => match &record.state {
            State::Success { result, .. } => result.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn answer(reply: &Replied) -> Answer {
    match reply {
        Replied::Claim(ClaimReply::Claimed(grant)) => Answer::Granted(Told::from_grant(grant)),
        Replied::Renew(RenewReply::Renewed { .. }) => Answer::Renewed,
        Replied::Renew(RenewReply::Lost | RenewReply::Damaged) => Answer::Lost,
        Replied::Claim(ClaimReply::Late)
        | Replied::Renew(RenewReply::Late)
        | Replied::Settle(SettleReply::Late) => Answer::Late,
        _ => Answer::Over,
    }
}
