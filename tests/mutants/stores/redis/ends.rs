//! Every verb while the clock stands still: what ends a microsecond before, now, or one after.

use std::time::Duration;

use idem_core::Fingerprint;
use idem_core::record::{
    Echo, Fence, Grant, Issue, OnAbandoned, Op, Outcome, Processing, Record, Renew, Settle, Slot,
    State, StoreTime, TokenBinding, format, step,
};
use idem_core::store::RedisStore;
use idem_tests::redis::RedisServer;

use super::any_record::{self, SUBJECT, look, put, send};
use super::attempt::{TERMS, order, owner};
use super::dice::Dice;
use crate::mutant::Edit;
use crate::relay::Relay;

const MICROSECOND: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Answers, bytes and end are as the specification says, on a whole millisecond and beside it.
pub(super) async fn every_end_to_the_microsecond(
    store: &RedisStore,
    server: &RedisServer,
    relay: &Relay,
) {
    let mut dice = Dice::new(20_261_201);
    // The server has some by the hash of the text that follows its clock.
    server.cli(&["SCRIPT", "FLUSH"]).unwrap();
    // By its own clock no key ends.
    let hour = machine().after(Duration::from_hours(1)).ceil_millis();
    for micros in [0, 1, 500, 999] {
        let now = hour.after(Duration::from_micros(micros));
        relay.change_besides(Some(stopped(now)));
        for _ in 0..1_500 {
            one_verb(&mut dice, store, server, now).await;
        }
    }
    relay.change_besides(None);
}

fn machine() -> StoreTime {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    StoreTime::default().after(since)
}

/// The clock of the steps; how long a key has to live is still counted by the server's.
fn stopped(now: StoreTime) -> Edit {
    let micros = now.as_micros();
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    Edit {
        from: "local clock = redis.call('TIME')".into(),
        to: format!("local clock = {{ '{seconds}', '{micros}' }}"),
    }
}

async fn one_verb(dice: &mut Dice, store: &RedisStore, server: &RedisServer, now: StoreTime) {
    let key = order(70);
    let record = record(dice, now);
    let op = op(dice, &record, now);
    let before = if dice.one_in(4) {
        server.cli(&["DEL", key.as_str()]).unwrap();
        Slot::Absent
    } else {
        let mut bytes = format::encode(&record);
        let is_damaged = dice.one_in(20);
        if is_damaged {
            bytes.push(0);
        }
        put(server, &key, &bytes, record.expires_at);
        let there = format::decode(bytes.into(), record.expires_at);
        there.map_or(Slot::Damaged, Slot::Record)
    };
    let (heard, reply) = send(store, &key, &op).await;
    assert_eq!(heard, now);
    let (after, expected) = step(before.clone(), &op, now);
    assert_eq!(reply, expected, "{op:?} on {before:?} at {now:?}");
    look(server, &key, &after);
}

fn near(dice: &mut Dice, at: StoreTime) -> StoreTime {
    dice.pick(&[at.before(MICROSECOND), at, at.after(MICROSECOND)])
}

/// The same of what ends on a whole millisecond.
fn near_millis(dice: &mut Dice, at: StoreTime) -> StoreTime {
    let at = at.ceil_millis();
    dice.pick(&[at.before(MILLISECOND), at, at.after(MILLISECOND)])
}

fn record(dice: &mut Dice, now: StoreTime) -> Record {
    let mut record = any_record::record(dice, now);
    record.fence = fence(dice, now);
    let soon = now.after(MICROSECOND).ceil_millis();
    let late = now.after(TERMS.expire).ceil_millis();
    record.expires_at = dice.pick(&[soon, soon.after(MILLISECOND), late]);
    if dice.one_in(8) {
        let by_operator = dice.one_in(2);
        return Record {
            attempt: 0,
            fingerprint: None,
            token: None,
            closed_until: None,
            state: State::Closed { by_operator },
            ..record
        };
    }
    if let Some(until) = &mut record.closed_until {
        *until = near_millis(dice, now);
    }
    if let Some(token) = &mut record.token {
        token.until = near_millis(dice, now);
    }
    if let State::Processing(Processing { lease_until, .. }) = &mut record.state {
        *lease_until = near(dice, now);
    }
    record
}

fn fence(dice: &mut Dice, now: StoreTime) -> Fence {
    Fence::from_u64(near(dice, now).as_micros())
}

fn op(dice: &mut Dice, record: &Record, now: StoreTime) -> Op {
    let sent = dice.pick(&[now, now.after(TERMS.limit), now.after(TERMS.expire)]);
    let last = near(dice, sent);
    let mut op = match dice.number() % 6 {
        0 => Op::Renew(Renew {
            owner: owner(dice.number() % 2),
            terms: TERMS,
            checkpoint: dice.one_in(4),
            not_after: last,
            echo: echo(dice, now),
        }),
        1 => Op::Settle(Settle {
            owner: owner(dice.number() % 2),
            terms: TERMS,
            outcome: Outcome::Success(None),
            not_after: last,
            echo: Some(echo(dice, now)),
        }),
        2 => Op::Issue(Issue {
            subject: SUBJECT,
            ttl: TERMS.expire,
            not_after: last,
        }),
        _ => any_record::op(dice, record, now),
    };
    match &mut op {
        Op::Claim(op) => op.not_after = last,
        Op::Settle(op) => op.not_after = last,
        Op::Refuse(op) => op.not_after = last,
        _ => {}
    }
    op
}

/// Of an attempt that was answered a retention ago.
fn echo(dice: &mut Dice, now: StoreTime) -> Echo {
    let takeover = dice.one_in(2);
    let token = TokenBinding {
        subject: SUBJECT,
        until: near_millis(dice, now),
    };
    Echo {
        answered: near(dice, now.before(TERMS.expire)),
        grant: Grant {
            fence: fence(dice, now),
            number: dice.pick(&[1, u32::MAX]),
            since: now.before(TERMS.expire),
            takeover,
            doubt: takeover && dice.one_in(2),
            token: dice.one_in(2).then_some(token),
        },
        checkpoint: !dice.one_in(4),
        policy: dice.pick(&[OnAbandoned::Hold, OnAbandoned::Rerun]),
        fingerprint: dice.one_in(2).then(|| Fingerprint::from_bytes([9; 16])),
    }
}
