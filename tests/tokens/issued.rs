//! Issuing: to whom, for how long, and what is refused.

use std::time::Duration;

use idem_core::record::Status;
use idem_core::store::MemoryStore;
use idem_core::store::memory::ManualClock;
use idem_core::{Error, Idempotency, Policy};
use idem_tests::body::Bodies;

use crate::rig::{self, ALICE, Rig, TTL, is_rejected};

#[tokio::test]
async fn a_token_is_good_until_its_time_is_over() {
    let clock = ManualClock::new();
    let rig = Rig::with_limit(
        MemoryStore::with_clock(clock.clone()),
        Duration::from_secs(2),
    );
    let (in_time, late) = (rig.issue().await, rig.issue().await);
    clock.advance(TTL.checked_sub(Duration::from_millis(2)).unwrap());
    rig.tokens.consume(&in_time, ALICE).await.unwrap();
    clock.advance(Duration::from_millis(3));
    assert!(is_rejected(&rig.tokens.consume(&late, ALICE).await));
    assert_eq!(rig.status(&late).await, None);
}

#[tokio::test]
async fn a_token_that_is_handed_back_keeps_its_own_deadline() {
    let clock = ManualClock::new();
    let rig = Rig::with_limit(
        MemoryStore::with_clock(clock.clone()),
        Duration::from_secs(2),
    );
    let token = rig.issue().await;
    let fail = async || {
        let body = async || {
            Err::<u32, _>(Error::MissingKey {
                part: "the amount".into(),
            })
        };
        rig.tokens.run(&token, ALICE, Policy::new(), body).await
    };
    clock.advance(TTL / 2);
    assert!(matches!(fail().await, Err(Error::MissingKey { .. })));
    clock.advance(TTL / 2);
    assert!(is_rejected(&fail().await));
}

#[tokio::test]
async fn a_subject_is_any_part_of_a_key() {
    let rig = rig::memory();
    let by_number = rig.tokens.issue(7_u64, TTL).await.unwrap();
    rig.tokens.consume(&by_number, "7").await.unwrap();
    let of_a_tenant = rig.tokens.issue((3, "bob"), TTL).await.unwrap();
    let text = of_a_tenant.to_string();
    assert!(is_rejected(&rig.tokens.consume(&text, "3:bob").await));
    rig.tokens.consume(text, (3, "bob")).await.unwrap();
}

#[tokio::test]
async fn what_can_not_be_issued_is_refused_before_anything_is_written() {
    let rig = rig::memory();
    for blank in [None, Some(""), Some(" \u{200b}")] {
        let error = rig.tokens.issue(blank, TTL).await.unwrap_err();
        assert!(matches!(error, Error::MissingKey { part } if part == "subject"));
    }
    let nanosecond = Duration::from_nanos(1);
    for ttl in [Duration::ZERO, nanosecond, Duration::MAX] {
        let error = rig.tokens.issue(ALICE, ttl).await.unwrap_err();
        assert!(matches!(error, Error::InvalidPolicy { .. }), "{error}");
    }
    let bad_prefix = rig.idem.tokens("order submit");
    let error = bad_prefix.issue(ALICE, TTL).await.unwrap_err();
    assert!(matches!(error, Error::InvalidKey { .. }), "{error}");
    let error = bad_prefix.consume("x", ALICE).await.unwrap_err();
    assert!(matches!(error, Error::InvalidKey { .. }), "{error}");
    assert_eq!(rig.calls(), (0, 0));
}

#[tokio::test]
async fn a_caller_who_is_nobody_is_told_so() {
    let (rig, bodies) = (rig::memory(), Bodies::default());
    let token = rig.issue().await;
    let body = async || Ok(bodies.add());
    let error = rig.tokens.run(&token, None::<u64>, Policy::new(), body);
    let error: Error = error.await.unwrap_err();
    assert!(matches!(error, Error::MissingKey { part } if part == "subject"));
    assert_eq!(bodies.count(), 0);
    assert_eq!(rig.status(&token).await, Some(Status::Issued));
}

#[tokio::test]
async fn hashed_keys_change_nothing_for_tokens() {
    let idem = Idempotency::builder(MemoryStore::new()).hash_keys();
    let tokens = idem.build().unwrap().tokens("order:submit");
    let token = tokens.issue(ALICE, TTL).await.unwrap();
    tokens.consume(&token, ALICE).await.unwrap();
    assert!(is_rejected(&tokens.consume(&token, ALICE).await));
}
