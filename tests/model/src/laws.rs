//! The laws, judged after every step.

use idem_core::record::{
    ClaimReply, OnAbandoned, Op, Processing, Record, Reply, Slot, State, StoreTime,
};

use crate::attempt::{Stage, result_of};
use crate::delivery::success_in;
use crate::plan::{LEASE, MOMENT, Plan, TICK};
use crate::world::{Committed, STRANGER, World, claim, owner};

/// What has to hold, for every store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// Two attempts with live leases never coexist.
    One,
    /// A success is never overwritten, deleted or followed by an older attempt's.
    Two,
    /// A replay is what the winner committed.
    Three,
    /// A key whose owner died before its checkpoint is free after the lease.
    Four,
    /// At hold at most one attempt passes its checkpoint, but for the exceptions.
    Five,
    /// Each grant has a higher fence than all before.
    Six,
    /// Every operation may arrive again, late, any number of times.
    Nine,
    /// A claim that its caller gave up leaves no held key.
    Ten,
    /// Nothing begins while a refusal stands, and none is given for what has begun.
    Refusal,
    /// Whoever waits is answered as soon as the lease can have lapsed.
    Answered,
}

impl Law {
    /// As the checker reports it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "law 1",
            Self::Two => "law 2",
            Self::Three => "law 3",
            Self::Four => "law 4",
            Self::Five => "law 5",
            Self::Six => "law 6",
            Self::Nine => "law 9",
            Self::Ten => "law 10",
            Self::Refusal => "a refusal stands",
            Self::Answered => "whoever waits is answered",
        }
    }
}

impl World {
    pub(crate) fn judge(&mut self, plan: &Plan) {
        let granted = self.attempts.iter().filter_map(|one| one.truth.granted);
        plan.seen
            .takeovers(granted.filter(|one| one.takeover).count());
        self.learns_of_a_success(plan);
        if self.has_dropped_a_success() {
            self.breaks(Law::Two);
        }
        if !self.has_lost() && self.has_two_holders() {
            self.breaks(Law::One);
        }
        if !self.has_lost() && self.is_held_for_nobody(plan) {
            self.breaks(Law::Ten);
        }
        if self.is_held_by_the_dead(plan) {
            self.breaks(Law::Four);
        }
    }

    pub(crate) fn processing(&self) -> Option<(&Record, &Processing)> {
        match &self.slot {
            Slot::Record(record) if !record.expires_at.has_passed(self.now) => {
                match &record.state {
                    State::Processing(attempt) => Some((record, attempt)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn has_two_holders(&self) -> bool {
        let live = self
            .processing()
            .filter(|(_, attempt)| !attempt.lease_until.has_passed(self.now));
        let mut holders = self.attempts.iter().enumerate();
        let holders = holders
            .by_ref()
            .filter(|(_, attempt)| attempt.holds(self.now));
        let mut holders = holders.map(|(i, _)| owner(i)).peekable();
        let Some(first) = holders.next() else {
            return false;
        };
        holders.next().is_some() || live.is_some_and(|(record, _)| record.owner != first)
    }

    fn is_held_for_nobody(&self, plan: &Plan) -> bool {
        let Some((record, attempt)) = self.processing() else {
            return false;
        };
        let mut attempts = self.attempts.iter().enumerate();
        let holder = attempts.find(|(i, _)| owner(*i) == record.owner);
        let is_nobodys = holder.is_some_and(|(_, holder)| match holder.stage {
            Stage::GivenUp => true,
            // The engine knows of its own resends. What copies a claim behind its back may leave a
            // record to a caller who has heard the other copy's refusal.
            Stage::Refused => !plan.copies,
            _ => false,
        });
        // A takeover in doubt that was given up leaves the doubt of the attempt before.
        is_nobodys && !(attempt.given_up && attempt.doubt)
    }

    fn is_held_by_the_dead(&self, plan: &Plan) -> bool {
        let Some((record, _)) = self.processing().filter(|_| plan.own_checkpoint) else {
            return false;
        };
        let mut attempts = self.attempts.iter().enumerate();
        let Some((_, holder)) = attempts.find(|(i, _)| owner(*i) == record.owner) else {
            return false;
        };
        let was_in_doubt = holder.truth.granted.is_some_and(|granted| granted.doubt);
        let may_be_held = holder.truth.has_marked || (was_in_doubt && plan.recover);
        !may_be_held
            && holder.truth.lease_until.has_passed(self.now)
            && !matches!(self.probe(plan, self.now).1, ClaimReply::Claimed(_))
    }

    /// What a claim of somebody new would be answered.
    fn probe(&self, plan: &Plan, now: StoreTime) -> (Slot, ClaimReply) {
        ask(plan, self.slot.clone(), now)
    }

    /// Law 2, by what was seen and not by what the store says of itself.
    fn has_dropped_a_success(&self) -> bool {
        let Some(success) = self.ledger.success else {
            return false;
        };
        let Slot::Record(record) = &self.slot else {
            return self.now < success.until;
        };
        let is_it = record.fence == success.fence
            && success_in(&self.slot) == Some(&result_of(success.whose))
            && !record.expires_at.has_passed(self.now);
        self.now < success.until && !is_it
    }

    fn learns_of_a_success(&mut self, plan: &Plan) {
        let Slot::Record(record) = &self.slot else {
            return;
        };
        let Some(result) = success_in(&self.slot) else {
            return;
        };
        let fence = record.fence;
        let before = self.ledger.success;
        if before.is_some_and(|before| before.fence == fence)
            || record.expires_at.has_passed(self.now)
        {
            return;
        }
        let is_overwritten = before.is_some_and(|before| self.now < before.until);
        // An attempt may not come back over the grave of a later one's success.
        let is_older = fence < self.ledger.highest_success && !self.has_lost();
        let whose = (0..plan.attempts).find(|&i| result_of(i) == *result);
        self.ledger.success = whose.map(|whose| Committed {
            whose,
            fence,
            until: self.now.after(plan.expire),
        });
        self.ledger.highest_success = self.ledger.highest_success.max(fence);
        if is_overwritten || is_older {
            self.breaks(Law::Two);
        }
    }

    /// Liveness, without faults from here on and with everybody else silent, which is a crash:
    /// somebody new who asks once a second is answered when the lease has lapsed. If its owner is
    /// alive and ends, at once.
    pub(crate) fn answers_whoever_waits(&self, plan: &Plan) -> bool {
        let mut now = self.now;
        let mut slot = self.slot.clone();
        while now <= self.now.after(LEASE + TICK) {
            let (after, reply) = ask(plan, slot, now);
            if is_an_answer(plan, &reply) {
                return true;
            }
            slot = after;
            now = now.after(TICK);
        }
        false
    }

    /// Excuses what a success that has expired stood for: its retention is over.
    pub(crate) fn expires(&mut self) {
        if let Some(success) = self.ledger.success
            && success.until.has_passed(self.now)
        {
            for attempt in self.granted_up_to(success.fence) {
                attempt.truth.is_excused = true;
            }
        }
    }
}

fn ask(plan: &Plan, slot: Slot, now: StoreTime) -> (Slot, ClaimReply) {
    let op = Op::Claim(claim(plan, STRANGER, now));
    match plan.mutant.act(slot, &op, now.after(MOMENT)) {
        (slot, Reply::Claim(reply)) => (slot, reply),
        (slot, _) => (slot, ClaimReply::Damaged),
    }
}

fn is_an_answer(plan: &Plan, reply: &ClaimReply) -> bool {
    match reply {
        ClaimReply::Claimed(_) | ClaimReply::Completed { .. } | ClaimReply::Refused => true,
        ClaimReply::OutcomeUnknown => plan.policy == OnAbandoned::Hold && !plan.recover,
        _ => false,
    }
}
