//! The scripts against the specification: the same answers, and the same bytes at the key.

use std::collections::HashMap;
use std::time::Duration;

use idem_core::Key;
use idem_core::record::{
    ClaimReply, Echo, Op, Owner, RenewReply, Reply, Slot, StoreTime, format, step,
};
use idem_core::store::redis::RedisStore;
use idem_core::store::{Answer, Store, StoreKey};
use idem_tests::redis::{RedisOptions, RedisServer};

use crate::dice::Dice;

mod draw;

const OPERATIONS: u32 = 100_000;
const KEYS: u64 = 6;

#[tokio::test]
async fn a_hundred_thousand_random_operations_answer_and_write_what_step_specifies() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let seed = std::env::var("IDEM_SEED").map_or(20_261_129, |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut trial = Trial::begin(&server.url(), seed).await;
    for number in 0..OPERATIONS {
        trial.operation(number).await;
    }
    println!("{:?}", trial.seen);
}

/// What the test believes of one key.
struct Believed {
    key: StoreKey,
    slot: Slot,
    /// What owners were granted and when they were last answered.
    grants: HashMap<Owner, Echo>,
}

struct Trial {
    dice: Dice,
    store: RedisStore,
    raw: redis::aio::MultiplexedConnection,
    keys: Vec<Believed>,
    now: StoreTime,
    seen: HashMap<String, u32>,
}

impl Trial {
    async fn begin(url: &str, seed: u64) -> Self {
        let store = RedisStore::connect(url).await.unwrap();
        let now = store.now().await.unwrap();
        let client = redis::Client::open(url).unwrap();
        let raw = client.get_multiplexed_async_connection().await.unwrap();
        let keys = (0..KEYS).map(|part| Believed {
            key: StoreKey::new("steps", &Key::new("p", (seed, part)).unwrap()).unwrap(),
            slot: Slot::Absent,
            grants: HashMap::new(),
        });
        Self {
            dice: Dice::new(seed),
            store,
            raw,
            keys: keys.collect(),
            now,
            seen: HashMap::new(),
        }
    }

    async fn operation(&mut self, number: u32) {
        let index = usize::try_from(self.dice.number() % KEYS).unwrap();
        if self.dice.one_in(400) {
            self.plant_something(index).await;
        }
        let op = self.draw(index);
        let key = self.keys[index].key.clone();
        let Answer { now, reply } = apply(&self.store, &key, &op).await;
        assert!(now >= self.now, "the store's time went back");
        self.now = now;
        let before = self.keys[index].slot.clone();
        let (after, expected) = step(before.clone(), &op, now);
        let (after, expected) = if reply == expected {
            (after, expected)
        } else {
            at_the_other_side_of_its_end(before.clone(), &op, now)
        };
        assert_eq!(
            reply, expected,
            "operation {number} {op:?} on {before:?} at {now:?}"
        );
        let name = format!("{reply:?}");
        let name = name.split([' ', '{']).next().unwrap().to_owned();
        *self.seen.entry(name).or_default() += 1;
        self.remember(index, &op, &reply, now);
        if ends_about(&before, now) {
            // Both sides of its end may give the same answer and leave different bytes.
            return self.look_again(index).await;
        }
        self.compare_bytes(index, &after, number, &op).await;
        self.keys[index].slot = after;
    }

    async fn look_again(&mut self, index: usize) {
        let key = self.keys[index].key.as_str();
        let (bytes, last_ms): (Option<Vec<u8>>, i64) = redis::pipe()
            .cmd("GET")
            .arg(key)
            .cmd("PEXPIRETIME")
            .arg(key)
            .query_async(&mut self.raw)
            .await
            .unwrap();
        let ends = u64::try_from(last_ms + 1).unwrap_or_default() * 1000;
        self.keys[index].slot = bytes.map_or(Slot::Absent, |bytes| {
            format::decode(bytes.into(), StoreTime::from_micros(ends))
                .map_or(Slot::Damaged, Slot::Record)
        });
    }

    async fn compare_bytes(&mut self, index: usize, after: &Slot, number: u32, op: &Op) {
        let key = self.keys[index].key.as_str();
        let (bytes, last_ms, (s, us)): (Option<Vec<u8>>, i64, (u64, u64)) = redis::pipe()
            .cmd("GET")
            .arg(key)
            .cmd("PEXPIRETIME")
            .arg(key)
            .cmd("TIME")
            .query_async(&mut self.raw)
            .await
            .unwrap();
        let looked_at = StoreTime::from_micros(s * 1_000_000 + us);
        let (Slot::Record(record), Some(bytes)) = (after, &bytes) else {
            let may_be_gone = match after {
                Slot::Record(record) => {
                    // Newer servers drop at once what is written in its last millisecond.
                    record
                        .expires_at
                        .has_passed(looked_at.after(Duration::from_millis(1)))
                }
                Slot::Absent => bytes.is_none(),
                Slot::Damaged => bytes.is_some(),
            };
            assert!(
                may_be_gone,
                "operation {number} {op:?} left {bytes:?}, not {after:?}"
            );
            return;
        };
        let expected = format::encode(record);
        assert_eq!(
            *bytes, expected,
            "operation {number} {op:?} should have left {record:?}"
        );
        let expected = i64::try_from(record.expires_at.as_micros() / 1000).unwrap() - 1;
        assert!(
            last_ms == expected || last_ms == -2,
            "operation {number} {op:?}: {last_ms} instead of {expected}"
        );
    }

    async fn plant_something(&mut self, index: usize) {
        let key = self.keys[index].key.as_str();
        let mut bytes = match &self.keys[index].slot {
            Slot::Record(record) => format::encode(record),
            _ => vec![1, 2, 3],
        };
        match self.dice.number() % 5 {
            0 => bytes.truncate(bytes.len() / 2),
            1 => bytes[0] = 2,
            2 => bytes[1] ^= self.dice.pick(&[0x04, 0x0f, 0x20, 0x40, 0x80]),
            3 => bytes.push(0),
            _ => bytes.clear(),
        }
        // What still is a record keeps its time; anything else is to stay until somebody acts.
        let hour = self.now.after(Duration::from_hours(1)).ceil_millis();
        let expires = match &self.keys[index].slot {
            Slot::Record(record) if format::decode(bytes.clone().into(), hour).is_ok() => {
                record.expires_at
            }
            _ => hour,
        };
        let planted = format::decode(bytes.clone().into(), expires);
        if planted
            .as_ref()
            .is_ok_and(|record| format::encode(record) != bytes)
        {
            // A closed mark whose own end is not the key's, which nobody writes.
            return;
        }
        let _: () = redis::cmd("SET")
            .arg(key)
            .arg(&bytes)
            .arg("PXAT")
            .arg(expires.as_micros() / 1000 - 1)
            .query_async(&mut self.raw)
            .await
            .unwrap();
        self.keys[index].slot = planted.map_or(Slot::Damaged, Slot::Record);
    }

    fn remember(&mut self, index: usize, op: &Op, reply: &Reply, now: StoreTime) {
        let grants = &mut self.keys[index].grants;
        match (op, reply) {
            (Op::Claim(op), Reply::Claim(ClaimReply::Claimed(grant))) => {
                let echo = Echo {
                    answered: now,
                    grant: *grant,
                    checkpoint: op.checkpoint,
                    policy: op.policy,
                    fingerprint: op.fingerprint,
                };
                grants.insert(op.owner, echo);
            }
            (Op::Renew(op), Reply::Renew(RenewReply::Renewed { .. })) => {
                if let Some(echo) = grants.get_mut(&op.owner) {
                    echo.answered = now;
                    echo.checkpoint |= op.checkpoint;
                }
            }
            _ => {}
        }
    }
}

async fn apply(store: &RedisStore, key: &StoreKey, op: &Op) -> Answer<Reply> {
    fn wrap<R>(answer: Answer<R>, kind: fn(R) -> Reply) -> Answer<Reply> {
        Answer {
            now: answer.now,
            reply: kind(answer.reply),
        }
    }
    match op {
        Op::Claim(op) => wrap(store.claim(key, op).await.unwrap(), Reply::Claim),
        Op::Renew(op) => wrap(store.renew(key, op).await.unwrap(), Reply::Renew),
        Op::Settle(op) => wrap(store.settle(key, op).await.unwrap(), Reply::Settle),
        Op::Issue(op) => wrap(store.issue(key, op).await.unwrap(), Reply::Issue),
        Op::Forget(op) => wrap(store.forget(key, op).await.unwrap(), Reply::Forget),
        Op::Resolve(op) => wrap(store.resolve(key, op).await.unwrap(), Reply::Resolve),
        Op::Refuse(op) => wrap(store.refuse(key, op).await.unwrap(), Reply::Refuse),
    }
}

/// What `op` makes of a record that ends about now. The server looks at its clock for TIME a
/// little later than for expiry, and newer servers sweep a record up to a millisecond early.
fn at_the_other_side_of_its_end(slot: Slot, op: &Op, now: StoreTime) -> (Slot, Reply) {
    let Slot::Record(record) = &slot else {
        return step(slot, op, now);
    };
    let (ends, millisecond) = (record.expires_at, Duration::from_millis(1));
    if !ends.has_passed(now) && ends.since(now) <= millisecond {
        return step(Slot::Absent, op, now);
    }
    if !ends.has_passed(now) || now.since(ends) > millisecond / 2 {
        return step(slot, op, now);
    }
    let mut record = record.clone();
    record.expires_at = now.after(millisecond).ceil_millis();
    let still_there = Slot::Record(record);
    let (after, reply) = step(still_there.clone(), op, now);
    let after = if after == still_there { slot } else { after };
    (after, reply)
}

fn ends_about(slot: &Slot, now: StoreTime) -> bool {
    let close = Duration::from_millis(1);
    matches!(slot, Slot::Record(record)
        if record.expires_at.since(now) <= close && now.since(record.expires_at) <= close)
}
