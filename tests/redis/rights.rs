//! Users, passwords and what they may do.

use std::time::Duration;

use idem_core::StoreErrorKind;
use idem_core::record::{ClaimReply, SettleReply};
use idem_core::store::{RedisStore, Store};
use idem_tests::redis::{RedisOptions, RedisServer};

use crate::attempt::{claim, echo, first_call, order, result, settle};

/// What a service needs, and no more: the scripts, the commands inside them, and push.
const LEAST: &str = "resetchannels &idem:wake:* ~shop:* -@all +evalsha +eval +get +set +setrange \
                     +del +time +pexpiretime +pttl +publish +subscribe +unsubscribe +ping +hello";

#[tokio::test]
async fn a_wrong_password_is_a_matter_of_set_up() {
    let server = RedisServer::start(RedisOptions::new().password("right")).unwrap();
    RedisStore::connect(&server.url()).await.unwrap();
    for url in [
        server.url_as("", "wrong"),
        server.url_as("nobody", "right"),
        format!("redis://{}/", server.address()),
    ] {
        let error = RedisStore::connect(&url).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        let told = format!("{error} {error:?}");
        assert!(!told.contains("wrong") && !told.contains("right"), "{told}");
    }
}

// CASES Y04
#[tokio::test]
async fn no_debug_text_tells_a_password() {
    let server = RedisServer::start(RedisOptions::new().password("s3cret")).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let builder = idem_core::store::redis::RedisBuilder::server(server.url());
    for told in [format!("{store:?}"), format!("{builder:?}")] {
        assert!(!told.contains("s3cret"), "{told}");
    }
}

#[tokio::test]
async fn a_user_with_the_least_rights_can_do_everything_a_service_does() {
    let options = RedisOptions::new().user("shop", "key", LEAST);
    let server = RedisServer::start(options).unwrap();
    let store = RedisStore::connect(&server.url_as("shop", "key"))
        .await
        .unwrap();
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
    store.peek(&order(1)).await.unwrap();
    let mut watch = store.watch(&order(2)).await.unwrap();
    is_woken_by_a_settle(&store, 2).await;
    tokio::time::timeout(Duration::from_secs(5), watch.changed())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_user_without_a_right_is_told_which() {
    let options = RedisOptions::new().user("reader", "key", "~* &* +@all -evalsha -eval");
    let server = RedisServer::start(options).unwrap();
    let store = RedisStore::connect(&server.url_as("reader", "key"))
        .await
        .unwrap();
    let now = store.now().await.unwrap();
    let error = store.claim(&order(1), &claim(1, now)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("evalsha"), "{error}");
    assert!(error.is_before_sending());
}

// CASES N36
#[tokio::test]
async fn a_user_who_may_not_publish_still_settles() {
    let rules = "resetchannels ~* +@all -publish -subscribe";
    let server = RedisServer::start(RedisOptions::new().user("quiet", "key", rules)).unwrap();
    let store = RedisStore::connect(&server.url_as("quiet", "key"))
        .await
        .unwrap();
    is_woken_by_a_settle(&store, 1).await;
    let now = store.now().await.unwrap();
    let answer = store.claim(&order(1), &claim(9, now)).await.unwrap();
    assert!(matches!(answer.reply, ClaimReply::Completed { .. }));
    // Nor may it listen: the waiter polls.
    let mut watch = store.watch(&order(1)).await.unwrap();
    let told = tokio::time::timeout(Duration::from_millis(50), watch.changed()).await;
    assert!(told.is_err(), "a watch that can not hear reports nothing");
}

/// An attempt that somebody waits for, ended.
async fn is_woken_by_a_settle(store: &RedisStore, number: u64) {
    let now = store.now().await.unwrap();
    let running = claim(number, now);
    let answer = store.claim(&order(number), &running).await.unwrap();
    let ClaimReply::Claimed(grant) = answer.reply else {
        panic!("{answer:?}")
    };
    let mut waiting = claim(1000 + number, now);
    waiting.wait = true;
    let waiter = store.claim(&order(number), &waiting).await.unwrap();
    assert!(matches!(waiter.reply, ClaimReply::InProgress { .. }));
    let settle = settle(&running, result(), echo(&running, grant, answer.now));
    let answer = store.settle(&order(number), &settle).await.unwrap();
    assert_eq!(answer.reply, SettleReply::Settled);
}
