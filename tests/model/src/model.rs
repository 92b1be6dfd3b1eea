//! The world as stateright explores it.

use idem_core::record::{Slot, StoreTime};
use stateright::{Model, Property};

use crate::attempt::{Answer, Attempt, Effect, End, Packet, Says, Stage};
use crate::client::{ANY, Finding};
use crate::delivery::{Heard, answer};
use crate::laws::Law;
use crate::operator::Word;
use crate::plan::{LIMIT, MOMENT, Plan, TICK};
use crate::world::World;

/// What happens next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A second passes.
    Tick,
    /// A second in which the store loses everything.
    Loses,
    /// The attempt claims.
    Begins(usize),
    /// It sends the same operation again.
    Resends(usize),
    /// Its caller goes away before the body's first poll.
    Drops(usize),
    /// Its body, or `recover`, is polled first.
    Polls(usize),
    /// `recover` has found out.
    Recovers(usize, Finding),
    /// The body asks for its checkpoint.
    Marks(usize),
    /// A heartbeat.
    Beats(usize),
    /// The body ends.
    Ends(usize, End),
    /// The end is told once more.
    TellsAgain(usize),
    /// The n-th packet of an attempt arrives.
    Arrives(usize, usize, Heard),
    /// The n-th reply on its way to an attempt arrives.
    ReplyArrives(usize, usize),
    /// An operator reads and speaks.
    Says(Word),
    /// The n-th word arrives.
    WordArrives(usize),
    /// Somebody refuses a request that has not come.
    Refuses,
    /// The n-th refusal arrives.
    RefusalArrives(usize),
}

impl Model for Plan {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let begun = self.beginning.iter();
        let world = begun.fold(World::new(self), |world, action| {
            self.happens(world, action)
        });
        vec![world]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // What comes after a law has fallen says nothing any more.
        if world.ledger.broken.is_some() {
            return;
        }
        // Before the first claim nothing depends on the time.
        let has_begun = world.slot != Slot::Absent || world.attempts[0].stage != Stage::Idle;
        if has_begun && world.now.after(TICK) <= self.end() {
            actions.push(Action::Tick);
            if world.ledger.losses < self.losses {
                actions.push(Action::Loses);
            }
        }
        for i in 0..self.attempts {
            self.acts_of(world, i, actions);
            self.arrivals_of(world, i, actions);
        }
        self.acts_from_outside(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        Some(self.happens(world.clone(), &action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! stands {
            ($($law:ident)*) => {
                vec![
                    $(Property::always(Law::$law.name(), |_, world: &World| {
                        world.ledger.broken != Some(Law::$law)
                    }),)*
                    Property::always(Law::Answered.name(), |plan: &Self, world: &World| {
                        world.answers_whoever_waits(plan)
                    }),
                ]
            };
        }
        stands!(One Two Three Four Five Six Nine Ten Refusal)
    }
}

impl Plan {
    fn happens(&self, mut world: World, action: &Action) -> World {
        match *action {
            Action::Tick => world.passes_a_second(self),
            Action::Loses => world.loses_everything(self),
            Action::Begins(i) => world.begins(self, i),
            Action::Resends(i) => world.resends(i),
            Action::Drops(i) => world.drops(i),
            Action::Polls(i) => world.polls(self, i),
            Action::Recovers(i, finding) => world.recovers(self, i, finding),
            Action::Marks(i) => world.marks(i),
            Action::Beats(i) => world.beats(i),
            Action::Ends(i, end) => world.ends(i, end),
            Action::TellsAgain(i) => world.tells_again(i),
            Action::Arrives(i, packet, heard) => world.packet_arrives(self, i, packet, heard),
            Action::ReplyArrives(i, reply) => {
                let reply = world.attempts[i].slow.remove(reply);
                world.reply_arrives(self, i, &reply);
            }
            Action::Says(said) => world.says(said),
            Action::WordArrives(n) => world.word_arrives(self, n),
            Action::Refuses => world.outside.refusals.push(world.now),
            Action::RefusalArrives(n) => world.refusal_arrives(self, n),
        }
        world.judge(self);
        world
    }
}

impl World {
    fn passes_a_second(&mut self, plan: &Plan) {
        let seconds = self.now.as_micros() / 1_000_000 + 1;
        self.now = StoreTime::from_micros(seconds * 1_000_000);
        self.expires();
        self.drops_what_is_late(plan);
    }

    fn loses_everything(&mut self, plan: &Plan) {
        self.passes_a_second(plan);
        self.slot = Slot::Absent;
        self.ledger.losses += 1;
        self.ledger.success = None;
        self.ledger.refused_until = None;
    }
}

/// What can not matter any more is forgotten, so that worlds that differ only in it are one.
impl World {
    /// Packets that the store, asked now, finds late, as it will ever after: `step` looks at the
    /// deadline first. Unless somebody still waits for that very answer.
    fn drops_what_is_late(&mut self, plan: &Plan) {
        for i in 0..plan.attempts {
            let attempt = &self.attempts[i];
            let late: Vec<_> = attempt
                .sent
                .iter()
                .map(|packet| !attempt.counts(&packet.says) && self.is_late(plan, i, packet))
                .collect();
            let attempt = &mut self.attempts[i];
            if !plan.copies {
                // What has arrived can not come again: only the rest is looked at by number.
                let arrived = attempt.arrived;
                attempt.arrived = 0;
                let kept = late.iter().enumerate().filter(|(_, late)| !**late);
                for (place, (n, _)) in kept.enumerate() {
                    attempt.arrived |= (arrived >> n & 1) << place;
                }
            }
            let mut late = late.into_iter();
            attempt.sent.retain(|_| !late.next().unwrap_or_default());
            if attempt.is_over() && attempt.sent.is_empty() {
                attempt.known = None;
                attempt.is_lost = false;
                attempt.asked_early = false;
                attempt.slow.clear();
            }
        }
    }

    fn is_late(&self, plan: &Plan, from: usize, packet: &Packet) -> bool {
        let op = Self::operation(plan, from, packet);
        let (slot, reply) = plan
            .mutant
            .act(self.slot.clone(), &op, self.now.after(MOMENT));
        slot == self.slot && answer(&reply) == Answer::Late
    }
}

impl Plan {
    /// What the process of an attempt may do next. That it may also do nothing is a crash.
    fn acts_of(&self, world: &World, i: usize, actions: &mut Vec<Action>) {
        let attempt = &world.attempts[i];
        match attempt.stage {
            Stage::Idle => {
                // Attempts are alike: they begin in their order.
                if i == 0 || world.attempts[i - 1].stage != Stage::Idle {
                    actions.push(Action::Begins(i));
                }
            }
            Stage::Asking { begun, .. } => {
                let is_claim = |says: &Says| matches!(says, Says::Claim);
                if self.may_send_again(world, attempt, is_claim) && world.now < begun.after(LIMIT) {
                    actions.push(Action::Resends(i));
                }
                actions.push(Action::Drops(i));
            }
            Stage::Granted { .. } => actions.extend([Action::Polls(i), Action::Drops(i)]),
            Stage::Recovering => Self::findings(world, i, actions),
            Stage::Running => self.acts_of_a_body(attempt, i, actions),
            Stage::Marking { begun } => {
                let is_mark = |says: &Says| matches!(says, Says::Mark(_));
                if self.may_send_again(world, attempt, is_mark) && world.now < begun.after(LIMIT) {
                    actions.push(Action::Resends(i));
                }
                // Without an answer it leaves without an effect.
                actions.extend([End::Fail, End::Abandon].map(|end| Action::Ends(i, end)));
            }
            Stage::Settling(_) | Stage::GivingUp { .. } => {
                let is_settle = |says: &Says| matches!(says, Says::Settle(..));
                if self.may_send_again(world, attempt, is_settle) {
                    actions.push(Action::TellsAgain(i));
                }
            }
            Stage::GivenUp | Stage::Refused | Stage::Ended => {}
        }
    }

    fn may_send_again(
        &self,
        world: &World,
        attempt: &Attempt,
        is_it: impl Fn(&Says) -> bool,
    ) -> bool {
        let (sends, last) = attempt.sends(is_it);
        sends < self.sends && last.is_some_and(|last| last.after(TICK / 2) < world.now)
    }

    fn findings(world: &World, i: usize, actions: &mut Vec<Action>) {
        if world.can_be_denied(Some(i), ANY) {
            actions.push(Action::Recovers(i, Finding::NotDone));
        }
        for whose in world.may_have_happened(Some(i), ANY) {
            actions.push(Action::Recovers(i, Finding::Done(whose)));
        }
        actions.push(Action::Recovers(i, Finding::Unknown));
    }

    fn acts_of_a_body(&self, attempt: &Attempt, i: usize, actions: &mut Vec<Action>) {
        if self.own_checkpoint && !attempt.truth.has_marked {
            actions.push(Action::Marks(i));
        }
        if attempt.sends(|says| matches!(says, Says::Renew(_))).0 < self.renewals {
            actions.push(Action::Beats(i));
        }
        let effect = attempt.truth.effect;
        if attempt.truth.has_passed && effect != Effect::Barred {
            actions.push(Action::Ends(i, End::Ok(i)));
        }
        if effect != Effect::Happened {
            actions.push(Action::Ends(i, End::Fail));
            if self.release {
                actions.push(Action::Ends(i, End::Release));
            }
        }
        actions.push(Action::Ends(i, End::Abandon));
    }

    fn arrivals_of(&self, world: &World, i: usize, actions: &mut Vec<Action>) {
        let attempt = &world.attempts[i];
        for (n, packet) in attempt.sent.iter().enumerate() {
            if attempt.arrived & (1 << n) != 0 {
                continue;
            }
            actions.push(Action::Arrives(i, n, Heard::Lost));
            if attempt.listens_to(packet) {
                actions.push(Action::Arrives(i, n, Heard::Now));
                if world.ledger.slow_replies < self.slow_replies {
                    actions.push(Action::Arrives(i, n, Heard::Later));
                }
            }
        }
        for n in 0..attempt.slow.len() {
            actions.push(Action::ReplyArrives(i, n));
        }
    }

    fn acts_from_outside(&self, world: &World, actions: &mut Vec<Action>) {
        let outside = &world.outside;
        if outside.words.len() < self.words {
            actions.extend(world.words().into_iter().map(Action::Says));
        }
        if outside.refusals.len() < self.refusals {
            actions.push(Action::Refuses);
        }
        actions.extend((0..outside.words.len()).map(Action::WordArrives));
        actions.extend((0..outside.refusals.len()).map(Action::RefusalArrives));
    }
}
