//! Lost replies and an unreachable store.

use std::time::Duration;

use idem_core::record::Status;
use idem_core::store::MemoryStore;
use idem_core::{Error, Idempotency, Policy, StoreErrorKind};
use idem_tests::body::Bodies;
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{ALICE, Rig, TTL};

const LIMIT: Duration = Duration::from_millis(100);

fn rig() -> Rig<MemoryStore> {
    Rig::with_limit(MemoryStore::new(), LIMIT)
}

// N10
#[tokio::test]
async fn a_lost_reply_to_the_use_of_a_token_is_answered_to_its_own_retry() {
    let (rig, bodies) = (rig(), Bodies::default());
    let token = rig.issue().await;
    rig.store.next(Verb::Claim, [Fault::lose_the_reply()]);
    assert_eq!(rig.submit(&token, &bodies).await.unwrap(), 1);
    assert_eq!(rig.store.calls(Verb::Claim), 2);

    let token = rig.issue().await;
    rig.store.next(Verb::Claim, [Fault::lose_the_reply()]);
    rig.tokens.consume(&token, ALICE).await.unwrap();
}

// N10
#[tokio::test]
async fn a_use_that_was_never_answered_hands_the_token_back() {
    let (rig, bodies) = (rig(), Bodies::default());
    let token = rig.issue().await;
    rig.store.next(Verb::Claim, [Fault::lose_the_reply(); 2]);
    let lost = rig.submit(&token, &bodies).await;
    assert!(matches!(lost, Err(Error::Store { .. })), "{lost:?}");
    rig.until_status(&token, Status::Issued).await;
    assert_eq!(rig.submit(&token, &bodies).await.unwrap(), 1);
}

// N10
#[tokio::test]
async fn a_lost_reply_to_the_end_of_a_use_is_replayed_to_its_own_retry() {
    let (rig, bodies) = (rig(), Bodies::default());
    let token = rig.issue().await;
    rig.store.next(Verb::Settle, [Fault::lose_the_reply(); 2]);
    for _ in 0..2 {
        assert_eq!(rig.submit(&token, &bodies).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_lost_reply_to_an_issue_is_asked_again_and_then_a_new_token_is_asked_for() {
    let rig = rig();
    rig.store.next(Verb::Issue, [Fault::lose_the_reply()]);
    let token = rig.issue().await;
    rig.tokens.consume(&token, ALICE).await.unwrap();

    rig.store.next(Verb::Issue, [Fault::lose_the_reply(); 2]);
    let lost = rig.tokens.issue(ALICE, TTL).await;
    assert!(matches!(lost, Err(Error::Store { .. })), "{lost:?}");
    let token = rig.issue().await;
    rig.tokens.consume(&token, ALICE).await.unwrap();
}

#[tokio::test]
async fn without_the_store_no_token_gets_in_whatever_the_engine_does_for_others() {
    let rig = rig();
    let careless = Policy::new().run_on_store_error().run_on_missing_key();
    let idem = Idempotency::builder(rig.store.clone())
        .limit(LIMIT)
        .defaults(careless)
        .build()
        .unwrap();
    let tokens = idem.tokens("order:submit");
    let bodies = Bodies::default();
    let body = async || Ok::<_, Error>(bodies.add());
    let nobody = tokens.run("x", None::<u64>, Policy::new(), body).await;
    assert!(matches!(nobody, Err(Error::MissingKey { .. })));
    let refused = tokens.run("x", ALICE, careless, body).await;
    assert!(matches!(refused, Err(Error::InvalidPolicy { .. })));

    rig.store.all(Fault::fail(StoreErrorKind::Unavailable));
    let refused = tokens.run("x", ALICE, Policy::new(), body).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    let refused = tokens.consume("x", ALICE).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    assert_eq!(bodies.count(), 0);
}
