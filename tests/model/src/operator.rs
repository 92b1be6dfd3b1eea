//! Who speaks to the store from outside, by what was read some time before.

use idem_core::record::{
    Fence, Forget, Op, OperatorReply, Refuse, RefuseReply, Reply, Resolve, Slot, Status, StoreTime,
    Verdict,
};

use crate::attempt::result_of;
use crate::laws::Law;
use crate::plan::{LIMIT, MOMENT, Plan};
use crate::world::{World, visible};

/// Words under way: like packets, each may arrive at any time, again, or never.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Outside {
    pub(crate) words: Vec<Word>,
    /// When each refusal was sent.
    pub(crate) refusals: Vec<StoreTime>,
}

/// A record as somebody read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kept {
    pub(crate) fence: Fence,
    pub(crate) status: Status,
}

/// What an operator says about the record that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// Drop it.
    Forget(Kept),
    /// It did nothing and can not any more.
    NotDone(Kept),
    /// The effect of this attempt happened.
    Done(Kept, usize),
}

impl Word {
    pub(crate) fn read(self) -> Kept {
        match self {
            Self::Forget(read) | Self::NotDone(read) | Self::Done(read, _) => read,
        }
    }

    fn operation(self) -> Op {
        let resolve = |read: Kept, verdict| {
            Op::Resolve(Resolve {
                fence: read.fence,
                verdict,
                force: false,
            })
        };
        match self {
            Self::Forget(Kept { fence, status }) => Op::Forget(Forget {
                fence,
                status,
                release: false,
                force: false,
            }),
            Self::NotDone(read) => resolve(read, Verdict::NotDone),
            Self::Done(read, whose) => resolve(read, Verdict::Done(Some(result_of(whose)))),
        }
    }
}

impl World {
    /// What an operator who tells the truth can say about what the store shows now.
    pub(crate) fn words(&self) -> Vec<Word> {
        let Some(read) = visible(&self.slot, self.now) else {
            return Vec::new();
        };
        let mut words = vec![Word::Forget(read)];
        if read.status == Status::Processing {
            if self.can_be_denied(None, read.fence) {
                words.push(Word::NotDone(read));
            }
            let done = self.may_have_happened(None, read.fence);
            words.extend(done.map(|whose| Word::Done(read, whose)));
        }
        words
    }

    /// Who says that something is so has made sure of it.
    pub(crate) fn says(&mut self, word: Word) {
        match word {
            Word::Forget(_) => {}
            Word::NotDone(read) => self.deny(None, read.fence),
            Word::Done(_, whose) => self.confirm(whose),
        }
        self.outside.words.push(word);
    }

    pub(crate) fn word_arrives(&mut self, plan: &Plan, index: usize) {
        let word = self.outside.words[index];
        let at = self.now.after(MOMENT);
        let before = self.slot.clone();
        let reply = self.acts(plan, &word.operation(), at);
        let is_done = matches!(
            reply,
            Reply::Forget(OperatorReply::Done) | Reply::Resolve(OperatorReply::Done)
        );
        if is_done && self.slot != before {
            self.hears_of_an_operator(word, &before, at);
        }
    }

    fn hears_of_an_operator(&mut self, word: Word, before: &Slot, at: StoreTime) {
        let read = word.read();
        if visible(before, at) != Some(read) {
            self.breaks(Law::Nine);
        }
        if let Word::Forget(_) = word {
            // It is the operator who answers for what comes now.
            for attempt in self.granted_up_to(read.fence) {
                attempt.truth.is_excused = true;
            }
            let success = self.ledger.success;
            if success.is_some_and(|success| success.fence == read.fence) {
                self.ledger.success = None;
            }
            if read.status == Status::Refused {
                self.ledger.refused_until = None;
            }
        }
        for attempt in &mut self.attempts {
            if attempt
                .truth
                .granted
                .is_some_and(|granted| granted.fence == read.fence)
            {
                attempt.truth.has_ended = true;
            }
        }
    }

    pub(crate) fn refusal_arrives(&mut self, plan: &Plan, index: usize) {
        let sent = self.outside.refusals[index];
        let at = self.now.after(MOMENT);
        let op = Op::Refuse(Refuse {
            expire: plan.expire,
            not_after: sent.after(LIMIT),
        });
        let was_refused =
            visible(&self.slot, at).is_some_and(|kept| kept.status == Status::Refused);
        let reply = self.acts(plan, &op, at);
        if reply == Reply::Refuse(RefuseReply::Refused) && !was_refused {
            // A refusal takes a fence, too.
            self.now = at;
            self.ledger.refused_until = Some(at.after(plan.expire));
            let is_in_doubt = self.attempts.iter().any(|attempt| {
                let truth = &attempt.truth;
                truth.has_passed && !truth.is_excused
            });
            if is_in_doubt && !self.has_lost() && plan.holds_to_the_end() {
                self.breaks(Law::Refusal);
            }
        }
    }
}
