//! What a process does with its attempt: the engine's `admit`, `ask`, `guard`, `run` and
//! `afterwards`, without their machinery.

use idem_core::record::{Fence, OnAbandoned, StoreTime};

use crate::attempt::{Answer, Effect, End, Known, Packet, Reply, Says, Stage};
use crate::laws::Law;
use crate::mutant::Mutant;
use crate::plan::{LIMIT, Plan};
use crate::world::World;

/// What `recover` finds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It did not happen and can not any more.
    NotDone,
    /// The effect of this attempt happened.
    Done(usize),
    /// Nobody can say.
    Unknown,
}

impl World {
    pub(crate) fn begins(&mut self, plan: &Plan, i: usize) {
        if plan.mutant == Mutant::RecoverBeforeTheClaim
            && self.can_be_denied(Some(i), ANY)
            && self.attempts[i].truth.granted.is_none()
        {
            self.deny(Some(i), ANY);
            self.attempts[i].asked_early = true;
        }
        self.attempts[i].stage = Stage::Asking {
            begun: self.now,
            sent: self.now,
            before: None,
        };
        self.send(i, Says::Claim);
    }

    /// The same claim once more, because nothing was heard.
    pub(crate) fn resends(&mut self, i: usize) {
        match self.attempts[i].stage {
            Stage::Asking { begun, sent, .. } => {
                self.attempts[i].stage = Stage::Asking {
                    begun,
                    sent: self.now,
                    before: Some(sent.after(LIMIT)),
                };
                self.send(i, Says::Claim);
            }
            Stage::Marking { .. } => {
                if let Some(known) = self.attempts[i].known {
                    self.send(i, Says::Mark(known));
                }
            }
            _ => {}
        }
    }

    /// The caller goes away before the first poll of the body.
    pub(crate) fn drops(&mut self, i: usize) {
        match self.attempts[i].stage {
            Stage::Asking { sent, .. } => self.gives_up(i, Some(sent.after(LIMIT)), false),
            Stage::Granted { before } => self.gives_up(i, before, false),
            _ => {}
        }
    }

    fn gives_up(&mut self, i: usize, until: Option<StoreTime>, was_refused: bool) {
        self.attempts[i].stage = Stage::GivingUp { until, was_refused };
        self.send(i, Says::Settle(End::GiveUp, self.attempts[i].known));
    }

    /// The first poll: of `recover` after a takeover in doubt, of the body otherwise.
    pub(crate) fn polls(&mut self, plan: &Plan, i: usize) {
        let Stage::Granted { before } = self.attempts[i].stage else {
            return;
        };
        if !self.may_begin(i) {
            return self.gives_up(i, before, false);
        }
        let attempt = &mut self.attempts[i];
        let is_in_doubt = attempt.known.is_some_and(|known| known.told.doubt);
        if is_in_doubt && plan.recover && !attempt.asked_early {
            attempt.stage = Stage::Recovering;
        } else {
            self.body_begins(plan, i);
        }
    }

    /// `AttemptGuard::begin`.
    fn may_begin(&mut self, i: usize) -> bool {
        let now = self.now;
        let attempt = &mut self.attempts[i];
        attempt.is_lost |= attempt.is_silent_for_too_long(now);
        !attempt.is_lost
    }

    fn body_begins(&mut self, plan: &Plan, i: usize) {
        self.attempts[i].stage = Stage::Running;
        if !plan.own_checkpoint {
            self.passes(plan, i);
        }
    }

    pub(crate) fn recovers(&mut self, plan: &Plan, i: usize, finding: Finding) {
        match finding {
            Finding::NotDone => {
                self.deny(Some(i), ANY);
                if self.may_begin(i) {
                    self.body_begins(plan, i);
                } else {
                    self.ends(i, End::Abandon);
                }
            }
            Finding::Done(whose) => {
                self.confirm(whose);
                self.settles(i, End::Ok(whose));
            }
            Finding::Unknown => self.ends(i, End::Abandon),
        }
    }

    pub(crate) fn marks(&mut self, i: usize) {
        if let Some(known) = self.attempts[i].known {
            self.attempts[i].stage = Stage::Marking { begun: self.now };
            self.attempts[i].truth.has_marked = true;
            self.send(i, Says::Mark(known));
        }
    }

    pub(crate) fn beats(&mut self, i: usize) {
        if let Some(known) = self.attempts[i].known {
            self.send(i, Says::Renew(known));
        }
    }

    /// The body ends: with its effect, by its word that nothing happened, or without a word.
    pub(crate) fn ends(&mut self, i: usize, end: End) {
        if let End::Ok(whose) = end {
            self.confirm(whose);
        }
        self.settles(i, end);
    }

    fn settles(&mut self, i: usize, end: End) {
        self.attempts[i].stage = Stage::Settling(end);
        self.send(i, Says::Settle(end, self.attempts[i].known));
    }

    /// The same settle once more, in the background.
    pub(crate) fn tells_again(&mut self, i: usize) {
        let attempt = &self.attempts[i];
        let end = match attempt.stage {
            Stage::Settling(end) => end,
            Stage::GivingUp { .. } => End::GiveUp,
            _ => return,
        };
        self.send(i, Says::Settle(end, attempt.known));
    }

    pub(crate) fn hears(&mut self, plan: &Plan, i: usize, reply: &Reply) {
        match reply.to.says {
            Says::Claim => self.hears_of_its_claim(plan, i, reply),
            Says::Mark(_) | Says::Renew(_) => self.hears_of_its_lease(plan, i, reply),
            Says::Settle(..) => self.hears_of_its_end(i, reply),
        }
    }

    fn hears_of_its_claim(&mut self, plan: &Plan, i: usize, reply: &Reply) {
        let Stage::Asking { begun, before, .. } = self.attempts[i].stage else {
            return;
        };
        match reply.answer {
            Answer::Granted(told) => {
                let Packet { sent, .. } = reply.to;
                self.attempts[i].known = Some(Known {
                    answered: reply.at,
                    sent,
                    told,
                    checkpoint: !plan.own_checkpoint || (told.doubt && plan.recover),
                });
                self.attempts[i].stage = Stage::Granted { before };
            }
            Answer::Late if self.now < begun.after(LIMIT) => {
                self.attempts[i].stage = Stage::Asking {
                    begun,
                    sent: self.now,
                    before,
                };
                self.send(i, Says::Claim);
            }
            _ if before.is_some() => self.gives_up(i, before, true),
            _ => self.attempts[i].stage = Stage::Refused,
        }
    }

    fn hears_of_its_lease(&mut self, plan: &Plan, i: usize, reply: &Reply) {
        let is_mark = matches!(reply.to.says, Says::Mark(_));
        let attempt = &mut self.attempts[i];
        match reply.answer {
            Answer::Renewed => {
                if let Some(known) = &mut attempt.known {
                    known.answered = known.answered.max(reply.at);
                    known.sent = known.sent.max(reply.to.sent);
                    known.checkpoint |= is_mark;
                }
                if is_mark && attempt.is_lost {
                    self.ends(i, End::Fail);
                } else if is_mark {
                    attempt.stage = Stage::Running;
                    self.passes(plan, i);
                }
            }
            Answer::Late => match attempt.stage {
                Stage::Marking { begun } if is_mark && self.now < begun.after(LIMIT) => {
                    self.resends(i);
                }
                _ if is_mark => self.ends(i, End::Fail),
                _ => {}
            },
            _ => {
                attempt.is_lost = true;
                if is_mark {
                    self.ends(i, End::Fail);
                }
            }
        }
    }

    fn hears_of_its_end(&mut self, i: usize, reply: &Reply) {
        let attempt = &mut self.attempts[i];
        attempt.stage = match (attempt.stage, reply.answer) {
            (stage, Answer::Late) => stage,
            // Before that a send of the claim may still arrive behind it.
            (
                stage @ Stage::GivingUp {
                    until: Some(until), ..
                },
                _,
            ) if reply.at <= until => stage,
            (
                Stage::GivingUp {
                    was_refused: true, ..
                },
                _,
            ) => Stage::Refused,
            (Stage::GivingUp { .. }, _) => Stage::GivenUp,
            _ => Stage::Ended,
        };
    }

    /// Its effects may begin.
    fn passes(&mut self, plan: &Plan, i: usize) {
        let truth = &mut self.attempts[i].truth;
        truth.has_passed = true;
        // Whatever one that was barred tries is refused; for one that was forgotten the operator
        // answers.
        truth.is_excused |= truth.effect == Effect::Barred;
        if truth.is_excused {
            return;
        }
        let others = self.attempts.iter().enumerate();
        let mut others = others
            .filter(|(j, _)| *j != i)
            .map(|(_, other)| &other.truth);
        let is_second = others.any(|other| other.has_passed && !other.is_excused);
        if self.has_lost() || !plan.holds_to_the_end() {
            return;
        }
        if is_second && plan.policy == OnAbandoned::Hold {
            self.breaks(Law::Five);
        }
        if self
            .ledger
            .refused_until
            .is_some_and(|until| self.now < until)
        {
            self.breaks(Law::Refusal);
        }
    }

    /// Whether somebody who looks can say that nothing has happened up to this fence.
    pub(crate) fn can_be_denied(&self, asker: Option<usize>, fence: Fence) -> bool {
        self.others(asker, fence).all(|j| {
            let truth = &self.attempts[j].truth;
            truth.is_excused || truth.effect != Effect::Happened
        })
    }

    /// …and makes sure of it.
    pub(crate) fn deny(&mut self, asker: Option<usize>, fence: Fence) {
        let others: Vec<_> = self.others(asker, fence).collect();
        for j in others {
            let truth = &mut self.attempts[j].truth;
            if truth.effect == Effect::Open {
                truth.effect = Effect::Barred;
            }
            truth.is_excused |= truth.has_passed;
        }
    }

    /// Whose effect somebody who looks may find.
    pub(crate) fn may_have_happened(
        &self,
        asker: Option<usize>,
        fence: Fence,
    ) -> impl Iterator<Item = usize> {
        self.others(asker, fence).filter(|&j| {
            let truth = &self.attempts[j].truth;
            truth.has_passed && !truth.is_excused && truth.effect != Effect::Barred
        })
    }

    pub(crate) fn confirm(&mut self, whose: usize) {
        self.attempts[whose].truth.effect = Effect::Happened;
    }

    fn others(&self, asker: Option<usize>, fence: Fence) -> impl Iterator<Item = usize> {
        let attempts = self.attempts.iter().enumerate();
        attempts.filter_map(move |(j, attempt)| {
            let granted = attempt.truth.granted?;
            (Some(j) != asker && granted.fence <= fence).then_some(j)
        })
    }
}

pub(crate) const ANY: Fence = Fence::from_u64(u64::MAX);
