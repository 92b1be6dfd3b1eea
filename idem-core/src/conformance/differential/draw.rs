//! Drawing the next operation on a key: mostly what an engine would send, often what arrives
//! late, twice or from somebody who read too early.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;

use crate::fingerprint::Fingerprint;
use crate::record::{
    Claim, ClaimReply, Echo, Fence, Forget, Grant, Issue, OnAbandoned, Op, Outcome, Owner, Record,
    Refuse, Renew, RenewReply, Reply, Resolve, Settle, Slot, Status, StoreTime, Subject, Terms,
    Verdict,
};

/// Everybody who acts on one key, with what they sent and what they know.
#[derive(Debug, Default)]
pub(super) struct Hand {
    owners: Vec<Owner>,
    echoes: VecDeque<(Owner, Echo)>,
    sent: VecDeque<Op>,
    read: VecDeque<(Fence, Status)>,
}

/// What the drawing of one operation needs.
struct Draw<'a> {
    random: &'a mut Rng,
    there: &'a Slot,
    now: StoreTime,
    pace: Duration,
}

impl Hand {
    const OWNERS: usize = 4;
    const REMEMBERED: usize = 24;

    /// The next operation, where `there` is what probably stands at the key.
    pub(super) fn draw(
        &mut self,
        random: &mut Rng,
        there: &Slot,
        now: StoreTime,
        pace: Duration,
    ) -> Op {
        let mut draw = Draw {
            random,
            there,
            now,
            pace,
        };
        self.read_record(there);
        if draw.chance(20)
            && let Some(old) = draw.one_of(&self.sent)
        {
            return draw.sent_again(old);
        }
        let op = match draw.random.u32(0..100) {
            0..34 => Op::Claim(self.claim(&mut draw)),
            34..48 => Op::Renew(self.renew(&mut draw)),
            48..78 => Op::Settle(self.settle(&mut draw)),
            78..83 => Op::Issue(draw.issue()),
            83..90 => Op::Forget(self.forget(&mut draw)),
            90..96 => Op::Resolve(self.resolve(&mut draw)),
            _ => Op::Refuse(draw.refuse()),
        };
        remember(&mut self.sent, op.clone());
        op
    }

    /// Notes what an owner knows after an answer.
    pub(super) fn learn(&mut self, op: &Op, reply: &Reply, now: StoreTime) {
        match (op, reply) {
            (Op::Claim(op), Reply::Claim(ClaimReply::Claimed(grant))) => {
                let echo = Echo {
                    answered: now,
                    grant: *grant,
                    checkpoint: op.checkpoint || (op.recover && grant.doubt),
                    policy: op.policy,
                    fingerprint: op.fingerprint,
                };
                remember(&mut self.echoes, (op.owner, echo));
            }
            (Op::Renew(op), Reply::Renew(RenewReply::Renewed { .. })) => {
                let known = self
                    .echoes
                    .iter_mut()
                    .filter(|(owner, _)| *owner == op.owner);
                for (_, echo) in known {
                    echo.answered = now;
                    echo.checkpoint |= op.checkpoint;
                }
            }
            _ => {}
        }
    }

    fn read_record(&mut self, there: &Slot) {
        if let Slot::Record(record) = there
            && let Some(status) = record.state.status()
        {
            remember(&mut self.read, (record.fence, status));
        }
    }

    fn owner(&mut self, draw: &mut Draw<'_>) -> Owner {
        if self.owners.len() < Self::OWNERS || draw.chance(6) {
            let owner = Owner::from_bytes(draw.random.u128(1..).to_be_bytes());
            if self.owners.len() < Self::OWNERS {
                self.owners.push(owner);
            } else {
                let leaving = draw.random.usize(0..self.owners.len());
                self.owners[leaving] = owner;
            }
            return owner;
        }
        self.owners[draw.random.usize(0..self.owners.len())]
    }

    /// Mostly whoever has the record now: others are told that they are too late.
    fn likely_owner(&mut self, draw: &mut Draw<'_>) -> Owner {
        match draw.there {
            Slot::Record(record) if draw.random.u32(0..100) < 70 => record.owner,
            _ => self.owner(draw),
        }
    }

    fn echo_of(&self, owner: Owner, draw: &mut Draw<'_>) -> Option<Echo> {
        let known = self.echoes.iter().rev().find(|(known, _)| *known == owner);
        let mut echo = match known {
            Some((_, echo)) => echo.clone(),
            None => draw.one_of(&self.echoes)?.1,
        };
        if draw.chance(10) {
            echo.answered = draw.now.before(draw.time(&[0, 1, 4, 16]));
        }
        Some(echo)
    }

    fn claim(&mut self, draw: &mut Draw<'_>) -> Claim {
        let terms = draw.terms();
        let needs_token = matches!(draw.there, Slot::Record(Record { token: Some(_), .. }));
        Claim {
            owner: self.owner(draw),
            terms,
            fingerprint: draw.fingerprint(),
            policy: draw.policy(),
            checkpoint: draw.random.bool(),
            token: draw
                .chance(if needs_token { 85 } else { 4 })
                .then(|| draw.subject()),
            recover: draw.chance(20),
            wait: draw.chance(40),
            not_after: draw.not_after(terms.limit),
        }
    }

    fn renew(&mut self, draw: &mut Draw<'_>) -> Renew {
        let owner = self.likely_owner(draw);
        let terms = draw.terms();
        let echo = self.echo_of(owner, draw);
        Renew {
            owner,
            terms,
            checkpoint: draw.chance(30),
            not_after: draw.not_after(terms.limit),
            echo: echo.unwrap_or_else(|| draw.made_up_echo()),
        }
    }

    fn settle(&mut self, draw: &mut Draw<'_>) -> Settle {
        let owner = self.likely_owner(draw);
        let terms = draw.terms();
        Settle {
            owner,
            terms,
            outcome: draw.outcome(),
            not_after: draw.not_after(terms.limit),
            echo: self.echo_of(owner, draw),
        }
    }

    fn forget(&self, draw: &mut Draw<'_>) -> Forget {
        let (fence, status) = self.as_read(draw);
        Forget {
            fence,
            status,
            release: draw.chance(40),
            force: draw.chance(40),
        }
    }

    fn resolve(&self, draw: &mut Draw<'_>) -> Resolve {
        let (fence, _) = self.as_read(draw);
        let verdict = if draw.random.bool() {
            Verdict::NotDone
        } else {
            Verdict::Done(draw.result())
        };
        Resolve {
            fence,
            verdict,
            force: draw.chance(40),
        }
    }

    /// Mostly what was read last, sometimes what was read long ago.
    fn as_read(&self, draw: &mut Draw<'_>) -> (Fence, Status) {
        if *draw.there == Slot::Damaged {
            return (Fence::default(), Status::Damaged);
        }
        let read = if draw.chance(75) {
            self.read.back().copied()
        } else {
            draw.one_of(&self.read)
        };
        read.unwrap_or((Fence::default(), Status::Processing))
    }
}

impl Draw<'_> {
    fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(0..100) < percent
    }

    fn one_of<T: Clone>(&mut self, all: &VecDeque<T>) -> Option<T> {
        if all.is_empty() {
            return None;
        }
        all.get(self.random.usize(0..all.len())).cloned()
    }

    /// One of these multiples of the pace, in whole milliseconds.
    fn time(&mut self, multiples: &[u32]) -> Duration {
        self.pace * multiples[self.random.usize(0..multiples.len())]
    }

    fn terms(&mut self) -> Terms {
        Terms {
            lease: self.time(&[1, 1, 2, 8]),
            expire: self.time(&[1, 2, 8, 16]),
            doubt: self.time(&[0, 1, 8, 32]),
            limit: self.time(&[1, 1, 4]),
        }
    }

    fn not_after(&mut self, limit: Duration) -> StoreTime {
        if self.chance(8) {
            self.now.before(self.time(&[0, 1, 4]))
        } else {
            // As much as an answer over a network takes.
            self.now.after(limit)
        }
    }

    fn fingerprint(&mut self) -> Option<Fingerprint> {
        match self.random.u32(0..100) {
            0..70 => None,
            70..95 => Some(Fingerprint::from_bytes([1; 16])),
            _ => Some(Fingerprint::from_bytes([2; 16])),
        }
    }

    fn policy(&mut self) -> OnAbandoned {
        if self.random.bool() {
            OnAbandoned::Hold
        } else {
            OnAbandoned::Rerun
        }
    }

    fn subject(&mut self) -> Subject {
        Subject::of(if self.chance(90) { "alice" } else { "mallory" })
    }

    fn bytes(&mut self) -> Bytes {
        let length = self.random.usize(0..40);
        match self.random.u32(0..3) {
            0 => Bytes::new(),
            1 => Bytes::from_static(b"paid"),
            _ => (0..length).map(|_| self.random.u8(..)).collect(),
        }
    }

    fn result(&mut self) -> Option<Bytes> {
        self.chance(70).then(|| self.bytes())
    }

    fn outcome(&mut self) -> Outcome {
        match self.random.u32(0..100) {
            0..22 => Outcome::Success(self.result()),
            22..30 => Outcome::SuccessForget,
            30..48 => Outcome::Failed,
            48..54 => Outcome::FailedWith(self.bytes()),
            54..64 => Outcome::Release,
            64..86 => Outcome::Abandon,
            _ => Outcome::GiveUp,
        }
    }

    fn issue(&mut self) -> Issue {
        Issue {
            subject: self.subject(),
            ttl: self.time(&[1, 4, 16]),
            not_after: self.not_after(self.pace),
        }
    }

    fn refuse(&mut self) -> Refuse {
        Refuse {
            expire: self.time(&[1, 2, 4]),
            not_after: self.not_after(self.pace),
        }
    }

    /// What an owner would say whose attempt ran in a store that is gone.
    fn made_up_echo(&mut self) -> Echo {
        Echo {
            answered: self.now.before(self.time(&[0, 1, 4])),
            grant: Grant {
                fence: Fence::from_u64(self.now.before(self.pace * 4).as_micros()),
                number: self.random.u32(1..5),
                since: self.now.before(self.pace * 4),
                takeover: self.random.bool(),
                doubt: self.random.bool(),
                token: None,
            },
            checkpoint: self.random.bool(),
            policy: self.policy(),
            fingerprint: self.fingerprint(),
        }
    }

    /// A packet that the network kept, or a resend with a fresh time limit.
    fn sent_again(&mut self, mut op: Op) -> Op {
        if self.chance(40) {
            return op;
        }
        let fresh = |limit: Duration| self.now.after(limit);
        match &mut op {
            Op::Claim(op) => op.not_after = fresh(op.terms.limit),
            Op::Renew(op) => op.not_after = fresh(op.terms.limit),
            Op::Settle(op) => op.not_after = fresh(op.terms.limit),
            Op::Issue(op) => op.not_after = fresh(self.pace),
            Op::Refuse(op) => op.not_after = fresh(self.pace),
            Op::Forget(_) | Op::Resolve(_) => {}
        }
        op
    }
}

fn remember<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == Hand::REMEMBERED {
        all.pop_front();
    }
    all.push_back(one);
}
