//! Waiters that are woken.

use std::time::Duration;

use idem_core::record::ClaimReply;
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{RedisStore, Store, Watch};
use idem_tests::proxy::Mode;
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::wait::{need, until};

use crate::attempt::{claim, echo, order, proxy, result, settle};

const PATIENCE: Duration = Duration::from_secs(5);

async fn is_told(watch: &mut Watch) -> bool {
    tokio::time::timeout(PATIENCE, watch.changed())
        .await
        .is_ok()
}

async fn is_quiet(watch: &mut Watch) -> bool {
    let told = tokio::time::timeout(Duration::from_millis(30), watch.changed());
    told.await.is_err()
}

/// A live attempt, a claim that waits for it, and the attempt's end.
async fn live_and_die(store: &RedisStore, number: u64) {
    let now = store.now().await.unwrap();
    let running = claim(number, now);
    let answer = store.claim(&order(number), &running).await.unwrap();
    let ClaimReply::Claimed(grant) = answer.reply else {
        panic!("{answer:?}")
    };
    let mut waiting = claim(100_000 + number, now);
    waiting.wait = true;
    store.claim(&order(number), &waiting).await.unwrap();
    let settle = settle(&running, result(), echo(&running, grant, answer.now));
    store.settle(&order(number), &settle).await.unwrap();
}

/// Waits off the runtime's thread until the server counts `count` subscribers of the channel.
async fn subscribers(server: &std::sync::Arc<RedisServer>, number: u64, count: usize) {
    let server = std::sync::Arc::clone(server);
    let looking = tokio::task::spawn_blocking(move || {
        let channel = format!("idem:wake:{}", order(number).as_str());
        until("subscribers", PATIENCE, || {
            let told = server.cli(&["PUBSUB", "NUMSUB", &channel])?;
            need(told.ends_with(&count.to_string()), told)
        })
    });
    looking.await.unwrap().unwrap();
}

fn plain() -> std::sync::Arc<RedisServer> {
    RedisServer::start(RedisOptions::new()).unwrap().into()
}

#[tokio::test]
async fn a_hundred_waiters_of_a_key_are_one_subscription_that_ends_with_the_last() {
    let server = plain();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let mut watches = Vec::new();
    for _ in 0..100 {
        watches.push(store.watch(&order(1)).await.unwrap());
    }
    let mut other = store.watch(&order(2)).await.unwrap();
    subscribers(&server, 1, 1).await;
    assert_eq!(server.calls("subscribe").unwrap(), 2);
    live_and_die(&store, 1).await;
    for watch in &mut watches {
        assert!(is_told(watch).await);
    }
    assert!(is_quiet(&mut other).await, "another key's waiter was woken");
    drop(watches);
    subscribers(&server, 1, 0).await;
    subscribers(&server, 2, 1).await;
    // Waiting again subscribes again.
    let mut watch = store.watch(&order(1)).await.unwrap();
    subscribers(&server, 1, 1).await;
    live_and_die(&store, 2).await;
    assert!(is_told(&mut other).await);
    assert!(is_quiet(&mut watch).await);
}

#[tokio::test]
async fn an_attempt_that_nobody_waits_for_publishes_nothing() {
    let server = plain();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let now = store.now().await.unwrap();
    crate::attempt::first_call(&store, 1, now).await;
    assert_eq!(server.calls("publish").unwrap(), 0);
    live_and_die(&store, 2).await;
    assert_eq!(server.calls("publish").unwrap(), 1);
}

#[tokio::test]
async fn a_lost_connection_comes_back_and_wakes_everybody() {
    let server = plain();
    let proxy = proxy(server.address());
    let store = RedisStore::connect(&proxy.url()).await.unwrap();
    let direct = RedisStore::connect(&server.url()).await.unwrap();
    let mut first = store.watch(&order(1)).await.unwrap();
    let mut second = store.watch(&order(2)).await.unwrap();
    proxy.set(Mode::Cut);
    live_and_die(&direct, 1).await;
    proxy.set(Mode::Pass);
    assert!(is_told(&mut first).await, "an end was missed");
    assert!(is_told(&mut second).await);
    subscribers(&server, 1, 1).await;
    live_and_die(&direct, 2).await;
    assert!(is_told(&mut second).await);
}

#[tokio::test]
async fn waiters_outlive_a_restart_of_the_server() {
    let server = plain();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let mut watch = store.watch(&order(1)).await.unwrap();
    server.restart_empty().unwrap();
    assert!(is_told(&mut watch).await);
    live_and_die(&store, 1).await;
    assert!(is_told(&mut watch).await);
}

#[tokio::test]
async fn a_silent_push_connection_delays_a_new_waiter_by_the_limit_only_once() {
    let server = plain();
    let proxy = proxy(server.address());
    let limit = Duration::from_millis(300);
    let store = RedisBuilder::server(proxy.url())
        .limit(limit)
        .connect()
        .await
        .unwrap();
    let _first = store.watch(&order(1)).await.unwrap();
    proxy.set(Mode::BlackHole);
    store.watch(&order(2)).await.unwrap_err();
    proxy.set(Mode::Pass);
    let mut tries = 0;
    let mut watch = loop {
        tries += 1;
        match store.watch(&order(3)).await {
            Ok(watch) => break watch,
            Err(error) => assert!(tries < 5, "{error}"),
        }
    };
    let direct = RedisStore::connect(&server.url()).await.unwrap();
    live_and_die(&direct, 3).await;
    assert!(is_told(&mut watch).await);
}

#[tokio::test]
async fn those_who_wait_on_a_silent_connection_get_another_by_themselves() {
    let server = plain();
    let proxy = proxy(server.address());
    let store = RedisBuilder::server(proxy.url())
        .limit(Duration::from_millis(300))
        .connect()
        .await
        .unwrap();
    let mut first = store.watch(&order(1)).await.unwrap();
    proxy.set(Mode::BlackHole);
    store.watch(&order(2)).await.unwrap_err();
    proxy.set(Mode::Pass);
    assert!(is_told(&mut first).await, "an end may have been missed");
    let direct = RedisStore::connect(&server.url()).await.unwrap();
    live_and_die(&direct, 1).await;
    assert!(is_told(&mut first).await);
}

#[tokio::test]
async fn an_idle_connection_asks_for_signs_of_life() {
    let server = plain();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let _watch = store.watch(&order(1)).await.unwrap();
    let to_the_server = format!(":{:04X}", server.address().port());
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let timers: Vec<&str> = sockets
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[2].ends_with(&to_the_server) && words[3] == "01").then(|| &words[5][..2])
        })
        .collect();
    // One for commands, one for pushes; 02 is the timer of keep-alive.
    assert_eq!(timers, ["02", "02"]);
}

#[tokio::test]
async fn a_waiter_who_leaves_a_frozen_server_holds_up_the_others_for_the_limit_only() {
    let server = plain();
    let limit = Duration::from_millis(300);
    let store = RedisBuilder::server(server.url())
        .limit(limit)
        .connect()
        .await
        .unwrap();
    let leaving = store.watch(&order(1)).await.unwrap();
    server.freeze().unwrap();
    drop(leaving);
    tokio::time::sleep(limit / 10).await;
    store.watch(&order(2)).await.unwrap_err();
    server.thaw().unwrap();
    let begin = std::time::Instant::now();
    let mut watch = loop {
        match store.watch(&order(2)).await {
            Ok(watch) => break watch,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
        }
    };
    live_and_die(&store, 2).await;
    assert!(is_told(&mut watch).await);
}
