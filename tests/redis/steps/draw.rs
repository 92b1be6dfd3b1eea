//! Operations drawn at random, so that few owners meet on few keys and times run out in between.

use std::time::Duration;

use bytes::Bytes;
use idem_core::Fingerprint;
use idem_core::record::{
    Claim, Echo, Fence, Forget, Grant, Issue, OnAbandoned, Op, Outcome, Owner, Refuse, Renew,
    Resolve, Settle, Slot, Status, StoreTime, Subject, Terms, Verdict,
};

use super::Trial;

impl Trial {
    pub(super) fn draw(&mut self, index: usize) -> Op {
        match self.dice.number() % 24 {
            0..8 => Op::Claim(self.claim()),
            8..12 => Op::Renew(self.renew(index)),
            12..18 => Op::Settle(self.settle(index)),
            18 => Op::Issue(Issue {
                subject: self.subject(),
                ttl: self.dice.pick(&[2, 40, 20_000].map(Duration::from_millis)),
                not_after: self.not_after(),
            }),
            19 => Op::Refuse(Refuse {
                expire: self.dice.pick(&[2, 40, 20_000].map(Duration::from_millis)),
                not_after: self.not_after(),
            }),
            20 | 21 => Op::Resolve(Resolve {
                fence: self.fence(index),
                verdict: match self.dice.number() % 3 {
                    0 => Verdict::NotDone,
                    1 => Verdict::Done(None),
                    _ => Verdict::Done(Some(self.payload())),
                },
                force: self.dice.one_in(2),
            }),
            _ => Op::Forget(Forget {
                fence: self.fence(index),
                status: self.status(index),
                release: self.dice.one_in(3),
                force: self.dice.one_in(2),
            }),
        }
    }

    fn claim(&mut self) -> Claim {
        Claim {
            owner: self.owner(),
            terms: self.terms(),
            fingerprint: self.fingerprint(),
            policy: self.policy(),
            checkpoint: self.dice.one_in(2),
            token: self.dice.one_in(6).then(|| self.subject()),
            recover: self.dice.one_in(4),
            wait: self.dice.one_in(3),
            not_after: self.not_after(),
        }
    }

    fn renew(&mut self, index: usize) -> Renew {
        let owner = self.owner();
        Renew {
            owner,
            terms: self.terms(),
            checkpoint: self.dice.one_in(3),
            not_after: self.not_after(),
            echo: self.echo(index, owner),
        }
    }

    fn settle(&mut self, index: usize) -> Settle {
        let owner = self.owner();
        Settle {
            owner,
            terms: self.terms(),
            outcome: match self.dice.number() % 10 {
                0 | 1 => Outcome::Success(Some(self.payload())),
                2 => Outcome::Success(None),
                3 => Outcome::SuccessForget,
                4 => Outcome::Failed,
                5 => Outcome::FailedWith(self.payload()),
                6 => Outcome::Release,
                7 | 8 => Outcome::Abandon,
                _ => Outcome::GiveUp,
            },
            not_after: self.not_after(),
            echo: (!self.dice.one_in(5)).then(|| self.echo(index, owner)),
        }
    }

    /// What the owner was told, or something that it might have been told.
    fn echo(&mut self, index: usize, owner: Owner) -> Echo {
        if let Some(echo) = self.keys[index].grants.get(&owner) {
            return echo.clone();
        }
        Echo {
            answered: self.now,
            grant: Grant {
                fence: self.fence(index),
                number: 3,
                since: self.now,
                takeover: self.dice.one_in(2),
                doubt: self.dice.one_in(2),
                token: None,
            },
            checkpoint: self.dice.one_in(2),
            policy: self.policy(),
            fingerprint: self.fingerprint(),
        }
    }

    fn owner(&mut self) -> Owner {
        Owner::from_bytes([self.dice.pick(&[0, 1, 2, 3]); 16])
    }

    fn terms(&mut self) -> Terms {
        let dice = &mut self.dice;
        Terms {
            lease: dice.pick(&[1, 4, 50, 10_000].map(Duration::from_millis)),
            expire: dice.pick(&[2, 30, 10_000, 600_000].map(Duration::from_millis)),
            doubt: dice.pick(&[3, 20_000, 900_000].map(Duration::from_millis)),
            limit: dice.pick(&[0, 1, 2, 2_000].map(Duration::from_millis)),
        }
    }

    fn not_after(&mut self) -> StoreTime {
        match self.dice.number() % 12 {
            0 => self.now,
            1 => self.now.before(Duration::from_secs(1)),
            2 => self.now.after(Duration::from_micros(150)),
            _ => self.now.after(Duration::from_secs(1)),
        }
    }

    fn fence(&mut self, index: usize) -> Fence {
        match &self.keys[index].slot {
            Slot::Record(record) if !self.dice.one_in(8) => record.fence,
            _ => Fence::from_u64(self.now.as_micros() + self.dice.number() % 5),
        }
    }

    fn status(&mut self, index: usize) -> Status {
        let real = match &self.keys[index].slot {
            Slot::Record(record) => record.state.status(),
            Slot::Damaged => Some(Status::Damaged),
            Slot::Absent => None,
        };
        let all = [
            Status::Processing,
            Status::Success,
            Status::Failed,
            Status::Issued,
            Status::Refused,
            Status::Damaged,
        ];
        match real {
            Some(real) if !self.dice.one_in(8) => real,
            _ => self.dice.pick(&all),
        }
    }

    fn policy(&mut self) -> OnAbandoned {
        self.dice.pick(&[OnAbandoned::Hold, OnAbandoned::Rerun])
    }

    fn subject(&mut self) -> Subject {
        Subject::from_bytes([self.dice.pick(&[7, 8]); 16])
    }

    fn fingerprint(&mut self) -> Option<Fingerprint> {
        self.dice
            .pick(&[None, Some(5), Some(5), Some(6)])
            .map(|byte| Fingerprint::from_bytes([byte; 16]))
    }

    fn payload(&mut self) -> Bytes {
        self.dice.pick(&[
            Bytes::new(),
            Bytes::from_static(b"\0\r\n$-1\r\n"),
            Bytes::from(vec![1; 300]),
        ])
    }
}
