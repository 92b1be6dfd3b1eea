//! What only a server of this kind has to stand: bytes and keys that others changed, missing
//! rights, no memory.

use std::time::Duration;

use idem_core::record::{
    Claim, ClaimReply, Fence, Forget, Op, OperatorReply, Outcome, Refuse, RefuseReply, Reply,
    Resolve, SettleReply, Slot, Status, StoreTime, Verdict, format, step,
};
use idem_core::store::{RedisStore, Store};
use idem_tests::changed;
use idem_tests::redis::RedisServer;

use super::attempt::{TERMS, claim, echo, order, settle};
use super::dice::Dice;

/// From here on a number of Lua has gaps; as store time it is the year 2255.
const LARGEST_FENCE: Fence = Fence::from_u64(1 << 53);

/// The scripts judge what others wrote as the format and `step` do.
pub(super) async fn what_is_nearly_a_record(store: &RedisStore, server: &RedisServer) {
    let mut dice = Dice::new(20_261_129);
    let shapes = changed::shapes(store.now().await.unwrap());
    let key = order(1);
    for _ in 0..2_500 {
        let bytes = changed::draw(&shapes, || dice.number());
        let set: [&[u8]; 5] = [b"SET", key.as_str().as_bytes(), &bytes, b"PX", b"600000"];
        server.command(&set).unwrap();
        let now = store.now().await.unwrap();
        let op = claim(dice.number() % 3, now);
        let there = format::decode(bytes.clone().into(), now.after(TERMS.expire));
        let there = there.map_or(Slot::Damaged, Slot::Record);
        if matches!(&there, Slot::Record(record) if record.fence > LARGEST_FENCE) {
            continue;
        }
        let answer = store.claim(&key, &op).await.unwrap();
        let (_, expected) = step(there.clone(), &Op::Claim(op), answer.now);
        assert_eq!(Reply::Claim(answer.reply), expected, "{bytes:?} {there:?}");
    }
}

pub(super) async fn a_value_of_another_type(store: &RedisStore, server: &RedisServer) {
    let key = order(2);
    server.cli(&["RPUSH", key.as_str(), "item"]).unwrap();
    let now = store.now().await.unwrap();
    let answer = store.claim(&key, &claim(1, now)).await.unwrap();
    assert_eq!(answer.reply, ClaimReply::Damaged);
    assert_eq!(store.peek(&key).await.unwrap().reply, Slot::Damaged);
}

/// A push that nobody waits for costs every settle.
pub(super) async fn nobody_is_told_who_did_not_ask(store: &RedisStore, server: &RedisServer) {
    let before = server.calls("publish").unwrap();
    let outcomes = [
        Outcome::Success(None),
        Outcome::Failed,
        Outcome::Release,
        Outcome::Abandon,
    ];
    for (number, outcome) in (10..).zip(outcomes) {
        let (op, granted) = granted(store, number).await;
        let settled = settle(&op, outcome, granted);
        let answer = store.settle(&order(number), &settled).await.unwrap();
        assert_eq!(answer.reply, SettleReply::Settled);
    }
    let (_, told) = granted(store, 20).await;
    let resolve = Resolve {
        fence: told.grant.fence,
        verdict: Verdict::NotDone,
        force: true,
    };
    let answer = store.resolve(&order(20), &resolve).await.unwrap();
    assert_eq!(answer.reply, OperatorReply::Done);
    let forget = Forget {
        fence: told.grant.fence,
        status: Status::Failed,
        release: false,
        force: false,
    };
    let answer = store.forget(&order(20), &forget).await.unwrap();
    assert_eq!(answer.reply, OperatorReply::Done);
    let refuse = Refuse {
        expire: TERMS.expire,
        not_after: answer.now.after(TERMS.limit),
    };
    let answer = store.refuse(&order(20), &refuse).await.unwrap();
    assert_eq!(answer.reply, RefuseReply::Refused);
    assert_eq!(server.calls("publish").unwrap(), before);
}

/// A record that somebody made permanent is shown as one, and leaves a mark of a minute.
pub(super) async fn a_permanent_record(store: &RedisStore, server: &RedisServer) {
    let key = order(30);
    let (_, told) = granted(store, 30).await;
    server.cli(&["PERSIST", key.as_str()]).unwrap();
    let Slot::Record(record) = store.peek(&key).await.unwrap().reply else {
        panic!("there was a record");
    };
    assert_eq!(record.expires_at, StoreTime::from_micros((1 << 53) - 1));
    let forget = Forget {
        fence: told.grant.fence,
        status: Status::Processing,
        release: false,
        force: true,
    };
    let answer = store.forget(&key, &forget).await.unwrap();
    assert_eq!(answer.reply, OperatorReply::Done);
    let last_ms = server.cli(&["PEXPIRETIME", key.as_str()]).unwrap();
    let expected = answer.now.after(Duration::from_mins(1)).ceil_millis();
    assert_eq!(
        last_ms.parse::<u64>().unwrap() + 1,
        expected.as_micros() / 1000
    );
}

/// Out of memory a duplicate still may wait, and what was begun is finished.
pub(super) async fn no_memory(store: &RedisStore, server: &RedisServer) {
    let (op, told) = granted(store, 40).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let waiter = Claim {
        wait: true,
        ..claim(41, told.answered)
    };
    let answer = store.claim(&order(40), &waiter).await.unwrap();
    assert!(matches!(answer.reply, ClaimReply::InProgress { .. }));
    let settled = settle(&op, Outcome::Success(None), told);
    let answer = store.settle(&order(40), &settled).await.unwrap();
    assert_eq!(answer.reply, SettleReply::Settled);
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
}

/// What may not be read is no damaged record, and a bit that may not be set is no bit.
pub(super) async fn rights_are_missing(store: &RedisStore, server: &RedisServer) {
    let (_, told) = granted(store, 50).await;
    let waiter = Claim {
        wait: true,
        ..claim(51, told.answered)
    };
    for right in ["get", "setrange"] {
        let set = |sign| server.cli(&["ACL", "SETUSER", "default", &format!("{sign}{right}")]);
        set("-").unwrap();
        let refused = store.claim(&order(50), &waiter).await;
        set("+").unwrap();
        refused.unwrap_err();
    }
}

async fn granted(store: &RedisStore, number: u64) -> (Claim, idem_core::record::Echo) {
    let op = claim(number, store.now().await.unwrap());
    let answer = store.claim(&order(number), &op).await.unwrap();
    let ClaimReply::Claimed(grant) = answer.reply else {
        panic!("{number} was free: {:?}", answer.reply);
    };
    let told = echo(&op, grant, answer.now);
    (op, told)
}
