//! Engines beside one another: namespaces, hashed keys, payloads, policies of their own.

use std::time::Duration;

use idem_core::engine::Builder;
use idem_core::record::Status;
use idem_core::store::StoreKey;
use idem_core::{Error, Fingerprint, Key, Policy, Results};
use idem_tests::faulty::Verb;

use crate::rig::{Bodies, Held, LEASE, Rig, failure, is_failure, key};

#[tokio::test]
async fn two_namespaces_on_one_store_do_not_meet() {
    let rig = Rig::new();
    let other = rig.beside(|builder| builder.namespace("other"));
    let bodies = Bodies::default();
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(other.count(Policy::new(), &bodies).await.unwrap(), 2);
    for rig in [&rig, &other] {
        let records = rig.idem.records("").await.unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].key, "test::A");
    }
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
}

#[tokio::test]
async fn two_engines_in_one_namespace_are_one() {
    let rig = Rig::new();
    let other = rig.beside(|builder| builder);
    let bodies = Bodies::default();
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(other.count(Policy::new(), &bodies).await.unwrap(), 1);
}

#[tokio::test]
async fn hashed_keys_show_no_value_and_are_found_again() {
    let rig = Rig::with(Builder::hash_keys);
    let key = Key::new("test", "a-card-number").unwrap();
    let call = || {
        rig.idem
            .run(key.clone(), Policy::new(), async || Ok::<_, Error>(1))
    };
    assert_eq!(call().await.unwrap(), 1);
    assert_eq!(call().await.unwrap(), 1);
    let records = rig.idem.records("test").await.unwrap();
    assert_eq!(records.len(), 1);
    assert!(!records[0].key.contains("card"), "{}", records[0].key);
    assert!(records[0].key.starts_with("test::"));
    // By what was read, and by what the caller knows.
    let read = Key::parse(&records[0].key).unwrap();
    for key in [&read, &key] {
        let found = rig.idem.peek(key).await.unwrap();
        assert_eq!(found.unwrap().status, Status::Success);
    }
}

fn payload(amount: u32) -> Fingerprint {
    Fingerprint::of(&amount).unwrap()
}

async fn pays(rig: &Rig, policy: Policy, amount: u32, held: Option<&Held>) -> Result<u32, Error> {
    let body = async || {
        if let Some(held) = held {
            held.stay().await;
        }
        Ok(amount)
    };
    let results = Results::stored();
    rig.idem
        .run_with(key(), policy, results, Some(payload(amount)), body)
        .await
}

fn is_mismatch(result: &Result<u32, Error>) -> bool {
    matches!(result, Err(Error::Mismatch { .. }))
}

// S11
#[tokio::test]
async fn another_payload_is_refused_while_the_first_runs_and_after_it() {
    let (rig, held) = (Rig::new(), Held::new());
    let waits = Policy::new().wait_in_progress();
    let rejects = Policy::new().reject_duplicates();
    let first = {
        let (rig, held) = (rig.clone(), held.clone());
        tokio::spawn(async move { pays(&rig, Policy::new(), 1, Some(&held)).await })
    };
    held.entered().await;
    for policy in [Policy::new(), waits, rejects] {
        assert!(is_mismatch(&pays(&rig, policy, 2, None).await));
    }
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    for policy in [Policy::new(), waits, rejects] {
        assert!(is_mismatch(&pays(&rig, policy, 2, None).await));
    }
    // One without a payload is another one, too.
    assert!(is_mismatch(
        &rig.count(Policy::new(), &Bodies::default()).await
    ));
    assert_eq!(pays(&rig, Policy::new(), 1, None).await.unwrap(), 1);
}

// S11
#[tokio::test]
async fn another_payload_is_refused_after_a_failure_and_an_abandon() {
    let rig = Rig::new();
    let failed = rig.idem.run_with(
        key(),
        Policy::new(),
        Results::stored(),
        Some(payload(1)),
        async || Err::<u32, _>(failure()),
    );
    assert!(is_failure(&failed.await));
    assert!(is_mismatch(&pays(&rig, Policy::new(), 2, None).await));
    let held = Held::new();
    let mut dropped = Box::pin(pays(&rig, Policy::new(), 1, Some(&held)));
    assert!(
        crate::rig::dropped_after(1, dropped.as_mut())
            .await
            .is_none()
    );
    drop(dropped);
    rig.until_idle().await;
    assert!(rig.is_abandoned().await);
    for policy in [Policy::new(), Policy::new().rerun_abandoned()] {
        assert!(is_mismatch(&pays(&rig, policy, 2, None).await));
    }
}

// S11
#[tokio::test]
async fn another_payload_is_refused_while_it_waits() {
    let (rig, held) = (Rig::new(), Held::new());
    let waits = Policy::new().wait_in_progress().rerun_abandoned();
    let forgets = Policy::new().forget();
    let first = rig.hold(forgets, &held).await;
    let (waiting, bodies) = (rig.clone(), Bodies::default());
    let call = tokio::spawn(async move {
        // The first one has no payload, which matches any.
        let body = async || Ok::<_, Error>(bodies.add());
        waiting
            .idem
            .run_with(key(), waits, Results::stored(), Some(payload(2)), body)
            .await
    });
    rig.store.until_calls(Verb::Claim, 3).await;
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    // Whoever comes first has the key; the other one is told.
    let second = pays(&rig, Policy::new(), 3, None).await;
    let waited = call.await.unwrap();
    assert_ne!(
        is_mismatch(&second),
        is_mismatch(&waited),
        "{second:?}, {waited:?}"
    );
}

// E03
#[tokio::test]
async fn times_that_can_not_be_kept_are_refused_before_anything_is_sent() {
    let rig = Rig::new();
    for policy in [
        Policy::new().expire(Duration::ZERO),
        Policy::new().expire(Duration::MAX),
        Policy::new().lease(Duration::ZERO),
        Policy::new().lease(LEASE * 3).expire(LEASE * 2),
    ] {
        let refused = rig.count(policy, &Bodies::default()).await;
        assert!(
            matches!(refused, Err(Error::InvalidPolicy { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(rig.store.calls(Verb::Claim), 0);
}

// E14, N06
#[tokio::test]
async fn a_record_lives_as_long_as_it_was_told() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let ten_minutes = Policy::new().expire(Duration::from_mins(10));
    let first = rig.hold(ten_minutes, &held).await;
    // Past its checkpoint at hold: the time of doubt, seven days.
    let days = rig.record().await.unwrap().expires_in.as_secs() / 86400;
    assert_eq!(days, 7);
    held.release();
    first.await.unwrap().unwrap();
    assert_eq!(
        rig.record().await.unwrap().expires_in,
        Duration::from_mins(10)
    );
    // E13: a duplicate prolongs nothing.
    rig.clock.advance(Duration::from_secs(599));
    assert_eq!(rig.count(ten_minutes, &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 0);
    rig.clock.advance(Duration::from_secs(1));
    assert_eq!(rig.count(ten_minutes, &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

// O04
#[tokio::test]
async fn a_refused_duplicate_is_told_for_how_long_and_what_to_do() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = rig.hold(Policy::new().lease(LEASE * 10), &held).await;
    rig.clock.advance(LEASE * 3);
    let says = Policy::new().message("Your order is being paid.");
    let refused = rig.count(says, &Bodies::default()).await.unwrap_err();
    let Error::InProgress { running_for, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(*running_for, LEASE * 3);
    assert_eq!(refused.retry_after(), Some(LEASE * 7));
    assert!(refused.is_retryable());
    assert_eq!(refused.message(), "Your order is being paid.");
    assert_eq!(refused.context().unwrap().key(), &key());
    held.release();
    first.await.unwrap().unwrap();
}

#[test]
fn an_address_in_the_store_has_its_three_parts() {
    let address = StoreKey::new("shop", &Key::new("order:pay", ("a:b", 7)).unwrap()).unwrap();
    assert_eq!(address.namespace(), "shop");
    assert_eq!(address.prefix(), "order:pay");
    assert_eq!(address.parts(), "a%3Ab:7");
    assert!(StoreKey::new("a:b", &key()).is_err());
}
