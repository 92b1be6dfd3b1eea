//! What is no record, and keys that are no ordinary text.

use idem_core::Key;
use idem_core::record::{
    ClaimReply, Fence, Forget, Grant, OperatorReply, Outcome, Refuse, RefuseReply, RenewReply,
    SettleReply, Slot, Status, StoreTime, format,
};
use idem_core::store::{RedisStore, Scan, Store, StoreKey};
use idem_tests::changed;
use idem_tests::redis::{RedisOptions, RedisServer};

use crate::attempt::{TERMS, claim, echo, first_call, order, renew, settle};
use crate::dice::Dice;

/// How each kind of foreign value gets to a key.
const FOREIGN: [&[&[u8]]; 7] = [
    &[b"SET", b"KEY", b"some text"],
    &[b"SET", b"KEY", b""],
    // A record of a format that is yet to come.
    &[b"SET", b"KEY", b"\x02\x01whatever it will be"],
    // One of ours that ends too early.
    &[b"SET", b"KEY", b"\x01\x01\0\0\0\x01"],
    &[b"HSET", b"KEY", b"field", b"value"],
    &[b"RPUSH", b"KEY", b"item"],
    &[b"SETBIT", b"KEY", b"100", b"1"],
];

fn plant(server: &RedisServer, key: &StoreKey, command: &[&[u8]]) {
    let name = |part: &&[u8]| match *part {
        b"KEY" => key.as_str().as_bytes().to_vec(),
        other => other.to_vec(),
    };
    let command: Vec<_> = command.iter().map(name).collect();
    server.command(&command).unwrap();
}

// CASES K14
#[tokio::test]
async fn foreign_values_are_damaged_to_every_verb_and_stay_as_they_are() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let now = store.now().await.unwrap();
    for (number, command) in (0..).zip(FOREIGN) {
        let key = order(number);
        plant(&server, &key, command);
        let before = server.command(&["DUMP", key.as_str()]).unwrap().to_string();
        every_verb_says_damaged(&store, &key, now).await;
        let after = server.command(&["DUMP", key.as_str()]).unwrap().to_string();
        assert_eq!(before, after, "{command:?} was touched");
        by_force_only(&store, &key).await;
    }
}

async fn every_verb_says_damaged(store: &RedisStore, key: &StoreKey, now: StoreTime) {
    let claim = claim(1, now);
    let reply = store.claim(key, &claim).await.unwrap().reply;
    assert_eq!(reply, ClaimReply::Damaged);
    let grant = Grant {
        fence: Fence::from_u64(1),
        number: 1,
        since: now,
        takeover: false,
        doubt: false,
        token: None,
    };
    let echo = echo(&claim, grant, now);
    let reply = store
        .renew(key, &renew(&claim, echo.clone()))
        .await
        .unwrap()
        .reply;
    assert_eq!(reply, RenewReply::Damaged);
    let settle = settle(&claim, Outcome::Success(None), echo);
    let reply = store.settle(key, &settle).await.unwrap().reply;
    assert_eq!(reply, SettleReply::Damaged);
    let refuse = Refuse {
        expire: TERMS.expire,
        not_after: claim.not_after,
    };
    let reply = store.refuse(key, &refuse).await.unwrap().reply;
    assert_eq!(reply, RefuseReply::Damaged);
    assert_eq!(store.peek(key).await.unwrap().reply, Slot::Damaged);
    let scan = Scan {
        prefix: key.as_str().to_owned(),
        cursor: None,
        page_size: 100,
    };
    let page = store.scan(&scan).await.unwrap().reply;
    assert_eq!(page.entries, [(key.as_str().to_owned(), Slot::Damaged)]);
}

async fn by_force_only(store: &RedisStore, key: &StoreKey) {
    let mut forget = Forget {
        fence: Fence::default(),
        status: Status::Damaged,
        release: false,
        force: false,
    };
    let reply = store.forget(key, &forget).await.unwrap().reply;
    assert_eq!(reply, OperatorReply::Changed);
    forget.force = true;
    let reply = store.forget(key, &forget).await.unwrap().reply;
    assert_eq!(reply, OperatorReply::Done);
    assert_eq!(store.peek(key).await.unwrap().reply, Slot::Absent);
}

#[tokio::test]
async fn keys_of_any_text_and_size_are_claimed_and_settled() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let huge = "x".repeat(10_000_000);
    let texts = [
        "\0",
        "\r\n$-1\r\n",
        "{a}{b}",
        "*?[x]",
        "日本",
        "a b\tc",
        huge.as_str(),
    ];
    for (number, text) in (0..).zip(texts) {
        let key = StoreKey::new("shop", &Key::new("p", format!("k{text}")).unwrap()).unwrap();
        assert!(key.as_str().len() < 300);
        let now = store.now().await.unwrap();
        let claim = claim(number, now);
        let answer = store.claim(&key, &claim).await.unwrap();
        let ClaimReply::Claimed(grant) = answer.reply else {
            panic!("{answer:?}")
        };
        let settle = settle(
            &claim,
            Outcome::Success(None),
            echo(&claim, grant, answer.now),
        );
        store.settle(&key, &settle).await.unwrap();
        let again = store.claim(&key, &self::claim(100, now)).await.unwrap();
        assert_eq!(again.reply, ClaimReply::Completed { result: None });
    }
    let keys: usize = server.cli(&["DBSIZE"]).unwrap().parse().unwrap();
    assert_eq!(keys, texts.len());
}

#[tokio::test]
async fn a_result_of_ten_megabytes_is_replayed_byte_for_byte() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let result: bytes::Bytes = (0..10_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let now = store.now().await.unwrap();
    let running = claim(1, now);
    let answer = store.claim(&order(1), &running).await.unwrap();
    let ClaimReply::Claimed(grant) = answer.reply else {
        panic!("{answer:?}")
    };
    let outcome = Outcome::Success(Some(result.clone()));
    let settle = settle(&running, outcome, echo(&running, grant, answer.now));
    store.settle(&order(1), &settle).await.unwrap();
    let now = store.now().await.unwrap();
    let again = store.claim(&order(1), &claim(2, now)).await.unwrap();
    let result = Some(result);
    assert!(
        again.reply == ClaimReply::Completed { result },
        "another result"
    );
}

// CASES E13
#[tokio::test]
async fn no_record_is_without_an_expiry_and_duplicates_do_not_prolong_it() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
    let before = store.peek(&order(1)).await.unwrap().reply;
    for number in 0..100 {
        let now = store.now().await.unwrap();
        store
            .claim(&order(1), &claim(number + 10, now))
            .await
            .unwrap();
    }
    assert_eq!(before, store.peek(&order(1)).await.unwrap().reply);
    // CASES E14: 600 s are 600 s, not 600 ms.
    let left: u64 = server
        .cli(&["PTTL", order(1).as_str()])
        .unwrap()
        .parse()
        .unwrap();
    assert!((590_000..=600_000).contains(&left), "{left} ms left");
}

/// The scripts and the decoder judge bytes apart from each other: whatever is changed in a record,
/// they agree on whether it still is one.
#[tokio::test]
async fn the_scripts_take_for_a_record_what_the_format_takes_for_one() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let client = redis::Client::open(server.url()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let mut dice = Dice::new(20_261_129);
    let shapes = changed::shapes(store.now().await.unwrap());
    let mut damaged = 0;
    for round in 0..4_000 {
        let bytes = changed::draw(&shapes, || dice.number());
        let now = store.now().await.unwrap();
        let set = redis::cmd("SET")
            .arg(order(1).as_str())
            .arg(&bytes)
            .arg("PX")
            .arg(60_000)
            .to_owned();
        let _: () = set.query_async(&mut raw).await.unwrap();
        let reply = store.claim(&order(1), &claim(1, now)).await.unwrap().reply;
        let is_a_record = format::decode(bytes.clone().into(), now).is_ok();
        assert_eq!(
            reply != ClaimReply::Damaged,
            is_a_record,
            "round {round}: {bytes:?} {reply:?}"
        );
        damaged += u32::from(!is_a_record);
    }
    assert!(
        (500..3_500).contains(&damaged),
        "{damaged} of 4000 were damaged"
    );
}
