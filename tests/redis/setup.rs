//! Set-ups in which records can vanish.

use std::time::Duration;

use idem_core::store::redis::RedisBuilder;
use idem_core::store::{RedisStore, Store};
use idem_core::{Error, Idempotency};
use idem_tests::redis::{Fsync, RedisOptions, RedisServer};
use idem_tests::sentinel::{MASTER, Sentinels};

async fn findings(url: &str) -> Vec<&'static str> {
    let store = RedisStore::connect(url).await.unwrap();
    let found = store.check().await.unwrap();
    for finding in &found {
        println!("{finding:?}");
    }
    found.iter().map(|finding| finding.code).collect()
}

fn kept() -> RedisOptions {
    RedisOptions::new().aof(Fsync::EverySecond)
}

async fn found(options: RedisOptions) -> Vec<&'static str> {
    let server = RedisServer::start(options).unwrap();
    findings(&server.url()).await
}

#[tokio::test]
async fn a_server_that_keeps_what_it_was_given_is_not_doubted() {
    assert!(found(kept()).await.is_empty());
}

// CASES N25, R06
#[tokio::test]
async fn a_server_that_evicts_is_doubted() {
    for policy in [
        "allkeys-lru",
        "volatile-lru",
        "volatile-ttl",
        "allkeys-random",
    ] {
        let options = kept().max_memory("100mb", policy);
        assert_eq!(found(options).await, ["eviction_policy"], "{policy}");
    }
}

// CASES N25
#[tokio::test]
async fn a_strict_engine_does_not_start_on_a_server_that_is_doubted() {
    let start = async |options| {
        let server = RedisServer::start(options).unwrap();
        let engine = Idempotency::redis(&server.url()).await.unwrap();
        engine.strict().await
    };
    for (doubted, named) in [
        (kept().max_memory("100mb", "allkeys-lru"), "allkeys-lru"),
        (RedisOptions::new().aof(Fsync::Never), "appendfsync no"),
    ] {
        let refused = start(doubted).await;
        let Err(Error::InvalidPolicy { reason }) = &refused else {
            panic!("{refused:?}");
        };
        assert!(reason.contains(named), "{reason}");
    }
    start(kept()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_writes_when_its_kernel_likes_is_doubted() {
    let options = RedisOptions::new().aof(Fsync::Never);
    assert_eq!(found(options).await, ["no_fsync"]);
    let options = RedisOptions::new().aof(Fsync::Always);
    assert!(found(options).await.is_empty());
}

#[tokio::test]
async fn a_server_that_forgets_at_a_crash_is_doubted() {
    assert_eq!(found(RedisOptions::new()).await, ["no_persistence"]);
    let snapshots = RedisOptions::new().line("save 60 1");
    assert_eq!(found(snapshots).await, ["no_persistence"]);
}

#[tokio::test]
async fn a_user_who_may_not_ask_is_told_what_is_known() {
    let options = RedisOptions::new().max_memory("100mb", "allkeys-lru").user(
        "shop",
        "key",
        "~* &* +@all -config",
    );
    let server = RedisServer::start(options).unwrap();
    let found = findings(&server.url_as("shop", "key")).await;
    assert_eq!(found, ["eviction_policy", "no_persistence"]);
}

#[tokio::test]
async fn replicas_that_may_be_behind_are_named() {
    let group = Sentinels::start(&kept()).unwrap();
    let builder = RedisBuilder::sentinel(MASTER, group.urls()).limit(Duration::from_secs(5));
    let store = builder.connect().await.unwrap();
    let found = store.check().await.unwrap();
    let codes: Vec<_> = found.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["asynchronous_replicas"]);
}
