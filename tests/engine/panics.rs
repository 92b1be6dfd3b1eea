//! Bodies, and types of the user, that panic.

use std::panic::AssertUnwindSafe;

use idem_core::record::Status;
use idem_core::{Error, Key, OnError, Policy, Results};
use idem_tests::faulty::{Fault, Verb};
use serde::{Deserialize, Serialize, Serializer};

use crate::rig::{Bodies, Rig, key};

/// Awaits a call that panics, and gives what it panicked with.
async fn payload_of<F>(call: F) -> String
where
    F: Future<Output: Send + std::fmt::Debug>,
{
    let mut call = std::pin::pin!(call);
    let panicked = std::future::poll_fn(|context| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => std::task::Poll::Ready(Err(payload)),
        }
    })
    .await;
    let payload = panicked.expect_err("it did not panic");
    payload
        .downcast_ref::<&str>()
        .expect("the payload is the text of the panic")
        .to_string()
}

async fn panics(rig: &Rig, policy: Policy) -> String {
    payload_of(rig.run(policy, async || panic!("of the body"))).await
}

// X04, M21
#[tokio::test]
async fn the_payload_reaches_the_caller_and_the_record_is_abandoned() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    assert_eq!(panics(&rig, Policy::new()).await, "of the body");
    assert!(rig.is_abandoned().await);
    let refused = rig.count(Policy::new(), &bodies).await;
    assert!(
        matches!(refused, Err(Error::OutcomeUnknown { .. })),
        "{refused:?}"
    );

    for number in 0..100 {
        let key = Key::new("after", number).unwrap();
        let body = async || Ok::<_, Error>(number);
        assert_eq!(
            rig.idem.run(key, Policy::new(), body).await.unwrap(),
            number
        );
    }
}

#[tokio::test]
async fn a_panic_at_rerun_is_run_again_at_once() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let policy = Policy::new().rerun_abandoned();
    panics(&rig, policy).await;
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn a_panic_reaches_the_caller_although_the_store_is_away() {
    let rig = Rig::new();
    rig.store.always(Verb::Settle, Fault::hang());
    assert_eq!(panics(&rig, Policy::new()).await, "of the body");
    rig.store.always(Verb::Settle, Fault::NONE);
    rig.until_idle().await;
    assert!(rig.is_abandoned().await);
}

/// What a closure does before its first await is the body, too: it may have had effects.
#[tokio::test]
async fn a_panic_before_the_future_is_made_is_a_panic_of_the_body() {
    fn never() -> std::future::Ready<Result<u32, Error>> {
        panic!("of the closure")
    }
    let rig = Rig::new();
    assert_eq!(
        payload_of(rig.run(Policy::new(), never)).await,
        "of the closure"
    );
    rig.until_idle().await;
    assert!(rig.is_abandoned().await);
}

#[derive(Debug, Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("of the serializer")
    }
}

// S07
#[tokio::test]
async fn a_result_whose_serializer_panics_is_a_success_that_can_not_be_stored() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let call = || {
        rig.idem.run(key(), Policy::new(), async || {
            bodies.add();
            Ok::<_, Error>(Unwritable)
        })
    };
    call().await.unwrap();
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.counts().result_not_stored, 1);
    let refused = call().await;
    assert!(
        matches!(refused, Err(Error::ResultUnavailable { .. })),
        "{refused:?}"
    );
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn a_classifier_that_panics_leaves_the_outcome_unknown() {
    fn classify(_: &Error) -> OnError {
        panic!("of the classifier")
    }
    let rig = Rig::new();
    let results = Results::<u32, Error>::stored().classify(classify);
    let body = async || Err(Error::NotInstalled);
    let call = rig.idem.run_with(key(), Policy::new(), results, None, body);
    assert_eq!(payload_of(call).await, "of the classifier");
    rig.until_idle().await;
    assert!(rig.is_abandoned().await);
}

#[tokio::test]
async fn a_body_that_panics_when_it_is_dropped_is_abandoned() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("of the drop");
        }
    }
    let rig = Rig::new();
    let call = rig.run(Policy::new(), async || {
        let _bomb = Bomb;
        Ok(1)
    });
    assert_eq!(payload_of(call).await, "of the drop");
    rig.until_idle().await;
    assert!(rig.is_abandoned().await);
}
