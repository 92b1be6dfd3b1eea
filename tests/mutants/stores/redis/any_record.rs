//! Every verb on records of every kind, also such as nobody comes to in a short history: fences that
//! are ahead of the clock, the last attempt there is, an operator's mark under a token.

use std::time::Duration;

use bytes::Bytes;
use idem_core::Fingerprint;
use idem_core::record::{
    Claim, Fence, Forget, OnAbandoned, Op, Outcome, Processing, Record, Refuse, Reply, Resolve,
    Settle, Slot, State, Status, StoreTime, Subject, TokenBinding, Verdict, format, step,
};
use idem_core::store::{RedisStore, Store, StoreKey};
use idem_tests::redis::RedisServer;
use idem_tests::resp;

use super::attempt::{TERMS, claim, order, owner};
use super::dice::Dice;

pub(super) const SUBJECT: Subject = Subject::from_bytes([5; 16]);

/// Answers, bytes and end are as the specification says, and whoever waits is told of an end.
pub(super) async fn every_verb_on_any_record(store: &RedisStore, server: &RedisServer) {
    let mut dice = Dice::new(20_261_130);
    let key = order(60);
    for _ in 0..4_000 {
        let now = store.now().await.unwrap();
        let record = record(&mut dice, now);
        let mut bytes = format::encode(&record);
        let is_damaged = dice.one_in(20);
        if is_damaged {
            bytes.push(0);
        }
        put(server, &key, &bytes, record.expires_at);
        let before = match format::decode(bytes.into(), record.expires_at) {
            Ok(record) => Slot::Record(record),
            Err(_) => Slot::Damaged,
        };
        let op = op(&mut dice, &record, now);
        let told = server.calls("publish").unwrap();
        let (now, reply) = send(store, &key, &op).await;
        let (after, expected) = step(before.clone(), &op, now);
        assert_eq!(reply, expected, "{op:?} on {before:?} at {now:?}");
        look(server, &key, &after);
        let is_told = server.calls("publish").unwrap() - told == 1;
        assert_eq!(is_told, ends(&before, &after), "{op:?} on {before:?}");
    }
}

pub(super) fn record(dice: &mut Dice, now: StoreTime) -> Record {
    let payload = dice.one_in(2).then(|| Bytes::from_static(b"some"));
    let at = now.before(Duration::from_secs(1));
    let state = match dice.number() % 8 {
        0 => State::Success {
            at,
            result: payload,
        },
        1 => State::Failed { at, error: payload },
        2 => State::Refused,
        3 => State::Issued,
        _ => State::Processing(processing(dice, now)),
    };
    let is_issued = state == State::Issued;
    let may_be_bound = !is_issued && state != State::Refused;
    Record {
        owner: owner(dice.number() % 2),
        fence: Fence::from_u64(dice.pick(&[at, now.after(TERMS.expire)]).as_micros()),
        attempt: dice.pick(&[1, u32::MAX]),
        fingerprint: (may_be_bound && dice.one_in(2)).then(|| Fingerprint::from_bytes([9; 16])),
        token: (is_issued || may_be_bound && dice.one_in(2)).then(|| TokenBinding {
            subject: SUBJECT,
            until: now.after(TERMS.expire).ceil_millis(),
        }),
        closed_until: dice.one_in(2).then(|| {
            // Before and after the record's own end.
            let time = dice.pick(&[TERMS.lease, 2 * TERMS.expire]);
            now.after(time).ceil_millis()
        }),
        state,
        expires_at: now.after(TERMS.expire).ceil_millis(),
    }
}

fn processing(dice: &mut Dice, now: StoreTime) -> Processing {
    let takeover = dice.one_in(2);
    let since = now.before(TERMS.lease);
    Processing {
        since,
        lease_until: dice.pick(&[since, now.after(TERMS.lease)]),
        expire: TERMS.expire,
        policy: dice.pick(&[OnAbandoned::Hold, OnAbandoned::Rerun]),
        checkpoint: dice.one_in(2),
        takeover,
        doubt: takeover && dice.one_in(2),
        given_up: dice.one_in(4),
        waiters: dice.one_in(2),
    }
}

pub(super) fn op(dice: &mut Dice, record: &Record, now: StoreTime) -> Op {
    let not_after = now.after(TERMS.limit);
    let result = Bytes::from_static(b"some");
    let force = dice.one_in(2);
    match dice.number() % 5 {
        0 => Op::Claim(Claim {
            policy: dice.pick(&[OnAbandoned::Hold, OnAbandoned::Rerun]),
            checkpoint: dice.one_in(2),
            token: record.token.map(|token| token.subject),
            recover: dice.one_in(2),
            wait: dice.one_in(2),
            ..claim(dice.number() % 2, now)
        }),
        1 => Op::Settle(Settle {
            owner: owner(dice.number() % 2),
            terms: TERMS,
            outcome: dice.pick(&[
                Outcome::Success(None),
                Outcome::Success(Some(result.clone())),
                Outcome::SuccessForget,
                Outcome::Failed,
                Outcome::FailedWith(result),
                Outcome::Release,
                Outcome::Abandon,
                Outcome::GiveUp,
            ]),
            not_after,
            echo: None,
        }),
        2 => Op::Resolve(Resolve {
            fence: record.fence,
            verdict: dice.pick(&[
                Verdict::NotDone,
                Verdict::Done(None),
                Verdict::Done(Some(result)),
            ]),
            force,
        }),
        3 => Op::Forget(Forget {
            fence: record.fence,
            // That of a mark is not told.
            status: record.state.status().unwrap_or(Status::Success),
            release: dice.one_in(2),
            force,
        }),
        _ => Op::Refuse(Refuse {
            expire: TERMS.expire,
            not_after,
        }),
    }
}

pub(super) async fn send(store: &RedisStore, key: &StoreKey, op: &Op) -> (StoreTime, Reply) {
    macro_rules! answer {
        ($verb:ident, $op:expr, $kind:ident) => {{
            let answer = store.$verb(key, $op).await.unwrap();
            (answer.now, Reply::$kind(answer.reply))
        }};
    }
    match op {
        Op::Claim(op) => answer!(claim, op, Claim),
        Op::Renew(op) => answer!(renew, op, Renew),
        Op::Settle(op) => answer!(settle, op, Settle),
        Op::Issue(op) => answer!(issue, op, Issue),
        Op::Forget(op) => answer!(forget, op, Forget),
        Op::Resolve(op) => answer!(resolve, op, Resolve),
        Op::Refuse(op) => answer!(refuse, op, Refuse),
    }
}

pub(super) fn put(server: &RedisServer, key: &StoreKey, bytes: &[u8], expires_at: StoreTime) {
    let last_ms = (expires_at.as_micros() / 1000 - 1).to_string();
    let set: [&[u8]; 5] = [
        b"SET",
        key.as_str().as_bytes(),
        bytes,
        b"PXAT",
        last_ms.as_bytes(),
    ];
    server.command(&set).unwrap();
}

pub(super) fn look(server: &RedisServer, key: &StoreKey, after: &Slot) {
    let bytes = server.command(&["GET", key.as_str()]).unwrap();
    match after {
        Slot::Absent => assert_eq!(bytes, resp::Reply::Nil),
        Slot::Damaged => {}
        Slot::Record(after) => {
            assert_eq!(
                bytes,
                resp::Reply::Bytes(format::encode(after)),
                "{after:?}"
            );
            let last_ms = server.cli(&["PEXPIRETIME", key.as_str()]).unwrap();
            let expires_at = (last_ms.parse::<u64>().unwrap() + 1) * 1000;
            assert_eq!(expires_at, after.expires_at.as_micros(), "{after:?}");
        }
    }
}

/// Whether an attempt that somebody waits for has ended, or was given up.
fn ends(before: &Slot, after: &Slot) -> bool {
    let is_awaited = processing_in(before).is_some_and(|processing| processing.waiters);
    let goes_on = processing_in(after).is_some_and(|processing| !processing.given_up);
    is_awaited && !goes_on && before != after
}

fn processing_in(slot: &Slot) -> Option<&Processing> {
    match slot {
        Slot::Record(Record {
            state: State::Processing(processing),
            ..
        }) => Some(processing),
        _ => None,
    }
}
