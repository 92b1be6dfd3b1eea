//! The table of the specification, row by row: what is there, what is asked, what is answered,
//! what is there then.
//!
//! A row names records and replies in words (`processing A 2 live checkpoint`), so that it can be
//! read beside the design. Letters are owners; the number behind one is that of its attempt.

mod claim;
mod laws;
mod operator;
mod renew;
mod settle;
mod token;
mod words;

use std::time::Duration;

use bytes::Bytes;

use self::words::{reply_in_words, slot_in_words};
use crate::fingerprint::Fingerprint;
use crate::record::{
    Claim, Echo, Fence, Grant, OnAbandoned, Op, Outcome, Owner, Processing, Record, Renew, Settle,
    Slot, State, StoreTime, Subject, Terms, TokenBinding, step,
};

const SECOND: Duration = Duration::from_secs(1);
/// When every row takes place.
const NOW: StoreTime = StoreTime::from_micros(1_000_000_000_000);
const TERMS: Terms = Terms {
    lease: Duration::from_secs(30),
    expire: Duration::from_mins(10),
    doubt: Duration::from_mins(100),
    limit: Duration::from_secs(2),
};
/// `TERMS.expire`, but for a microsecond.
const ALMOST_EXPIRE: Duration = Duration::from_micros(600_000_000 - 1);
const HOLD: OnAbandoned = OnAbandoned::Hold;
const RERUN: OnAbandoned = OnAbandoned::Rerun;

const A: Owner = owner(b'A');
const B: Owner = owner(b'B');

const fn owner(letter: u8) -> Owner {
    Owner::from_bytes([letter; 16])
}

/// From, operation, answer, to.
type Row = (Slot, Op, &'static str, &'static str);

#[track_caller]
fn check(rows: impl IntoIterator<Item = Row>) {
    for (number, (from, op, reply, to)) in rows.into_iter().enumerate() {
        let (after, answer) = step(from.clone(), &op, NOW);
        let got = (reply_in_words(&answer), slot_in_words(&after));
        let from = slot_in_words(&from);
        assert_eq!(
            got,
            (reply.into(), to.into()),
            "row {number}: {from}, {op:?}"
        );
        assert_ends(&after);
    }
}

/// Law 8: nothing stays for ever.
#[track_caller]
fn assert_ends(slot: &Slot) {
    if let Slot::Record(record) = slot {
        let longest = NOW.after(TERMS.doubt).ceil_millis();
        assert!(record.expires_at <= longest, "{record:?} stays too long");
        assert_eq!(record.expires_at, record.expires_at.ceil_millis());
    }
}

fn paid() -> Bytes {
    Bytes::from_static(b"paid")
}

/// A record of A's first attempt, granted ten seconds ago.
fn record(state: State) -> Record {
    Record {
        owner: A,
        fence: Fence::from_u64(NOW.before(SECOND * 10).as_micros()),
        attempt: 1,
        fingerprint: None,
        token: None,
        closed_until: None,
        state,
        expires_at: NOW.after(SECOND * 300),
    }
}

fn attempt(lease_until: StoreTime, policy: OnAbandoned, checkpoint: bool) -> Processing {
    Processing {
        since: NOW.before(SECOND * 10),
        lease_until,
        expire: TERMS.expire,
        policy,
        checkpoint,
        takeover: false,
        doubt: false,
        given_up: false,
        waiters: false,
    }
}

fn processing(attempt: Processing) -> Slot {
    record(State::Processing(attempt)).into()
}

/// Past its checkpoint, at hold.
fn live() -> Slot {
    processing(attempt(NOW.after(SECOND * 20), HOLD, true))
}

/// Its lease ends right now.
fn lapsed(policy: OnAbandoned, checkpoint: bool) -> Slot {
    processing(attempt(NOW, policy, checkpoint))
}

fn given_up() -> Slot {
    processing(Processing {
        given_up: true,
        ..attempt(NOW.before(SECOND), HOLD, true)
    })
}

/// A takeover of what may have happened.
fn in_doubt() -> Slot {
    processing(Processing {
        takeover: true,
        doubt: true,
        ..attempt(NOW.after(SECOND * 20), RERUN, false)
    })
}

fn success() -> Slot {
    let result = Some(paid());
    record(State::Success { at: NOW, result }).into()
}

fn failed() -> Slot {
    let error = None;
    record(State::Failed { at: NOW, error }).into()
}

fn failed_with_error() -> Slot {
    let error = Some(Bytes::from_static(b"declined"));
    record(State::Failed { at: NOW, error }).into()
}

fn refused() -> Slot {
    Slot::Record(Record {
        owner: Owner::NOBODY,
        attempt: 0,
        ..record(State::Refused)
    })
}

fn closed(by_operator: bool) -> Slot {
    Slot::Record(Record {
        attempt: 0,
        ..record(State::Closed { by_operator })
    })
}

/// An unused token of Alice's.
fn issued() -> Slot {
    Slot::Record(Record {
        token: Some(alices()),
        ..record(State::Issued)
    })
}

fn alice() -> Subject {
    Subject::of("alice")
}

fn alices() -> TokenBinding {
    TokenBinding {
        subject: alice(),
        until: NOW.after(SECOND * 100),
    }
}

/// The same record with something else about it.
fn but(slot: Slot, change: impl FnOnce(&mut Record)) -> Slot {
    match slot {
        Slot::Record(mut record) => {
            change(&mut record);
            record.into()
        }
        other => panic!("{other:?} is no record"),
    }
}

/// The same record, gone since right now.
fn expired(slot: Slot) -> Slot {
    but(slot, |record| record.expires_at = NOW)
}

const ONE: Option<Fingerprint> = Some(Fingerprint::from_bytes([1; 16]));
const TWO: Option<Fingerprint> = Some(Fingerprint::from_bytes([2; 16]));

/// Past its checkpoint, at hold.
fn claim_by(owner: Owner) -> Claim {
    Claim {
        owner,
        terms: TERMS,
        fingerprint: None,
        policy: HOLD,
        checkpoint: true,
        token: None,
        recover: false,
        wait: false,
        not_after: NOW.after(TERMS.limit),
    }
}

fn claims(owner: Owner) -> Op {
    Op::Claim(claim_by(owner))
}

fn claims_with(owner: Owner, change: impl FnOnce(&mut Claim)) -> Op {
    let mut claim = claim_by(owner);
    change(&mut claim);
    Op::Claim(claim)
}

/// What an owner knows that was answered a second ago.
fn echo() -> Echo {
    Echo {
        answered: NOW.before(SECOND),
        grant: Grant {
            fence: Fence::from_u64(77),
            number: 3,
            since: NOW.before(SECOND * 10),
            takeover: true,
            doubt: false,
            token: None,
        },
        checkpoint: true,
        policy: HOLD,
        fingerprint: None,
    }
}

fn renews(owner: Owner) -> Op {
    renews_with(owner, |_| {})
}

fn renews_with(owner: Owner, change: impl FnOnce(&mut Renew)) -> Op {
    let mut renew = Renew {
        owner,
        terms: TERMS,
        checkpoint: false,
        not_after: NOW.after(TERMS.limit),
        echo: echo(),
    };
    change(&mut renew);
    Op::Renew(renew)
}

fn marks_checkpoint(owner: Owner) -> Op {
    renews_with(owner, |renew| renew.checkpoint = true)
}

fn settles(owner: Owner, outcome: Outcome) -> Op {
    settles_with(owner, outcome, |_| {})
}

fn settles_with(owner: Owner, outcome: Outcome, change: impl FnOnce(&mut Settle)) -> Op {
    let mut settle = Settle {
        owner,
        terms: TERMS,
        outcome,
        not_after: NOW.after(TERMS.limit),
        echo: Some(echo()),
    };
    change(&mut settle);
    Op::Settle(settle)
}

fn ok() -> Outcome {
    Outcome::Success(Some(paid()))
}
