//! One moment: the store, who asks it, and what is remembered to judge by.

use std::hash::{Hash, Hasher};

use idem_core::record::{
    Claim, Echo, Fence, Op, Owner, Record, Renew, Reply, Settle, Slot, State, StoreTime,
};

use crate::attempt::{Attempt, Known, Packet, Says};
use crate::laws::Law;
use crate::operator::{Kept, Outside};
use crate::plan::{LIMIT, Plan, START};

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    pub(crate) now: StoreTime,
    pub(crate) slot: Slot,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) outside: Outside,
    pub(crate) ledger: Ledger,
}

/// What the laws are judged by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Ledger {
    pub(crate) highest: Fence,
    pub(crate) success: Option<Committed>,
    pub(crate) highest_success: Fence,
    /// A refusal stands until then.
    pub(crate) refused_until: Option<StoreTime>,
    pub(crate) losses: usize,
    pub(crate) slow_replies: usize,
    pub(crate) broken: Option<Law>,
}

/// A success that everybody has to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Committed {
    pub(crate) whose: usize,
    pub(crate) fence: Fence,
    pub(crate) until: StoreTime,
}

impl World {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            now: START,
            slot: Slot::Absent,
            attempts: vec![Attempt::IDLE; plan.attempts],
            outside: Outside::default(),
            ledger: Ledger::default(),
        }
    }

    /// The first law that fell stays.
    pub(crate) fn breaks(&mut self, law: Law) {
        self.ledger.broken.get_or_insert(law);
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.ledger.losses > 0
    }

    pub(crate) fn send(&mut self, from: usize, says: Says) {
        let packet = Packet {
            sent: self.now,
            says,
        };
        let sent = &mut self.attempts[from].sent;
        if !sent.contains(&packet) {
            sent.push(packet);
        }
    }

    /// The store does `op`.
    pub(crate) fn acts(&mut self, plan: &Plan, op: &Op, at: StoreTime) -> Reply {
        let slot = std::mem::replace(&mut self.slot, Slot::Absent);
        let (slot, reply) = plan.mutant.act(slot, op, at);
        plan.seen.note(&reply);
        self.slot = slot;
        reply
    }

    /// The operation that `packet` carries.
    pub(crate) fn operation(plan: &Plan, from: usize, packet: &Packet) -> Op {
        let owner = owner(from);
        let terms = plan.terms();
        let not_after = packet.sent.after(LIMIT);
        let renew = |known: Known, checkpoint| {
            Op::Renew(Renew {
                owner,
                terms,
                checkpoint,
                not_after,
                echo: known.echo(plan),
            })
        };
        match packet.says {
            Says::Claim => Op::Claim(claim(plan, owner, packet.sent)),
            Says::Mark(known) => renew(known, true),
            Says::Renew(known) => renew(known, false),
            Says::Settle(end, known) => Op::Settle(Settle {
                owner,
                terms,
                outcome: end.outcome(),
                not_after,
                echo: known.map(|known| known.echo(plan)),
            }),
        }
    }

    /// Attempts that the store has granted, up to this fence.
    pub(crate) fn granted_up_to(&mut self, fence: Fence) -> impl Iterator<Item = &mut Attempt> {
        self.attempts.iter_mut().filter(move |attempt| {
            attempt
                .truth
                .granted
                .is_some_and(|granted| granted.fence <= fence)
        })
    }
}

impl Known {
    fn echo(&self, plan: &Plan) -> Echo {
        Echo {
            answered: self.answered,
            grant: self.told.grant(),
            checkpoint: self.checkpoint,
            policy: plan.policy,
            fingerprint: None,
        }
    }
}

pub(crate) fn claim(plan: &Plan, owner: Owner, sent: StoreTime) -> Claim {
    Claim {
        owner,
        terms: plan.terms(),
        fingerprint: None,
        policy: plan.policy,
        checkpoint: !plan.own_checkpoint,
        token: None,
        recover: plan.recover,
        wait: true,
        not_after: sent.after(LIMIT),
    }
}

pub(crate) fn owner(attempt: usize) -> Owner {
    const LETTERS: &[u8] = b"ABCDEFGH";
    Owner::from_bytes([LETTERS[attempt]; 16])
}

/// Somebody who only looks what a claim would be answered.
pub(crate) const STRANGER: Owner = Owner::from_bytes([b'?'; 16]);

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self {
            now,
            slot,
            attempts,
            outside,
            ledger,
        } = self;
        (now, attempts, outside, ledger).hash(hasher);
        match slot {
            Slot::Absent => 0_u8.hash(hasher),
            Slot::Damaged => 1_u8.hash(hasher),
            Slot::Record(record) => hash_record(record, hasher),
        }
    }
}

fn hash_record(record: &Record, hasher: &mut impl Hasher) {
    let Record {
        owner,
        fence,
        attempt,
        fingerprint: _,
        token: _,
        closed_until,
        state,
        expires_at,
    } = record;
    (owner, fence, attempt, closed_until, expires_at).hash(hasher);
    std::mem::discriminant(state).hash(hasher);
    match state {
        State::Processing(attempt) => {
            (attempt.since, attempt.lease_until, attempt.checkpoint).hash(hasher);
            let marks = (attempt.takeover, attempt.doubt, attempt.given_up);
            (marks, attempt.waiters).hash(hasher);
        }
        State::Success { at, result } => (at, result).hash(hasher),
        State::Failed { at, error } => (at, error).hash(hasher),
        State::Closed { by_operator } => by_operator.hash(hasher),
        State::Issued | State::Refused => {}
    }
}

/// What `slot` shows to everybody.
pub(crate) fn visible(slot: &Slot, now: StoreTime) -> Option<Kept> {
    match slot.clone().visible(now) {
        Slot::Record(record) => Some(Kept {
            fence: record.fence,
            status: record.state.status()?,
        }),
        Slot::Absent | Slot::Damaged => None,
    }
}
