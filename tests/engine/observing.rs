//! What an observer hears of a call, and what a body hears of its attempt.

use idem_core::{Attempt, Error, Key, OnError, Outcome, Policy, Results, observe};
use idem_tests::faulty::{Fault, Verb};
use serde::{Deserialize, Serialize};

use crate::rig::{Bodies, Held, LEASE, Rig, failure, is_failure, key};

fn inner_key() -> Key {
    Key::new("inner", "A").unwrap()
}

// H08
#[tokio::test]
async fn each_way_to_a_result_has_its_name() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let first = rig.hold(Policy::new(), &held).await;
    let (refused, outcome) = observe(rig.count(Policy::new(), &bodies)).await;
    assert!(refused.is_err());
    assert_eq!(outcome, Outcome::Refused);
    held.release();
    first.await.unwrap().unwrap();
    let (_, outcome) = observe(rig.count(Policy::new(), &bodies)).await;
    assert_eq!(outcome, Outcome::Replayed);

    let rig = Rig::new();
    let (_, outcome) = observe(rig.count(Policy::new(), &bodies)).await;
    assert_eq!(outcome, Outcome::Executed);
    assert_eq!(observe(async { 1 }).await, (1, Outcome::Unguarded));
}

#[tokio::test]
async fn a_body_that_fails_was_executed_all_the_same() {
    let rig = Rig::new();
    let (failed, outcome) = observe(rig.run(Policy::new(), async || Err(failure()))).await;
    assert!(is_failure(&failed));
    assert_eq!(outcome, Outcome::Executed);
}

/// Somebody who only looks whether it is done must not take it for that.
#[tokio::test]
async fn a_stored_error_that_can_not_be_read_was_given_all_the_same() {
    let rig = Rig::new();
    let fails = async || Err::<u32, _>(Old::Declined(51));
    let stored = Results::stored().on_error(OnError::Replay).replay_errors();
    let call = rig.idem.run_with(key(), Policy::new(), stored, None, fails);
    match call.await {
        Err(Old::Declined(51)) => {}
        Err(Old::Guard(error)) => panic!("{error}"),
        other => panic!("{other:?}"),
    }
    let reads = Results::<u32, New>::stored().replay_errors();
    let never = async || -> Result<u32, New> { panic!("a second run") };
    let call = rig.idem.run_with(key(), Policy::new(), reads, None, never);
    let (told, outcome) = observe(call).await;
    let Err(New::Guard(Error::ResultUnavailable { reason, .. })) = told else {
        panic!("{told:?}");
    };
    assert!(reason.contains("failed"), "{reason}");
    assert_eq!(outcome, Outcome::Replayed);
}

#[derive(Debug, Serialize, Deserialize)]
enum Old {
    Declined(u32),
    #[serde(skip)]
    Guard(Error),
}

/// What it became in a later version.
#[derive(Debug, Serialize, Deserialize)]
enum New {
    Refused {
        code: u32,
    },
    #[serde(skip)]
    Guard(Error),
}

impl From<Error> for Old {
    fn from(error: Error) -> Self {
        Self::Guard(error)
    }
}

impl From<Error> for New {
    fn from(error: Error) -> Self {
        Self::Guard(error)
    }
}

#[tokio::test]
async fn of_calls_inside_one_another_the_outermost_is_observed() {
    let rig = Rig::new();
    let bodies = Bodies::default();
    let call = || {
        rig.run(Policy::new().forget(), async || {
            let inner = async || Ok::<_, Error>(bodies.add());
            rig.idem.run(inner_key(), Policy::new(), inner).await
        })
    };
    assert_eq!(observe(call()).await.1, Outcome::Executed);
    // Now the inner one is replayed, and the outer one still runs.
    assert_eq!(observe(call()).await.1, Outcome::Executed);
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn the_loser_of_a_lease_is_not_observed_as_the_call_inside_it() {
    let rig = Rig::new();
    rig.store.always(Verb::Renew, Fault::hang());
    let policy = Policy::new().lease(LEASE).rerun_abandoned();
    let call = rig.run(policy, async || {
        let inner = async || Ok::<_, Error>(1);
        for _ in 0..2 {
            rig.idem.run(inner_key(), Policy::new(), inner).await?;
        }
        std::future::pending().await
    });
    let (lost, outcome) = observe(call).await;
    assert!(matches!(lost, Err(Error::LeaseLost { .. })), "{lost:?}");
    assert_eq!(outcome, Outcome::Executed);
}

// K07
#[tokio::test]
async fn each_body_sees_its_own_attempt() {
    let rig = Rig::new();
    assert!(Attempt::current().is_none());
    let outer = rig.run(Policy::new(), async || {
        let outer = Attempt::current().unwrap();
        let inner = async || {
            let inner = Attempt::current().unwrap();
            assert_eq!(*inner.key(), inner_key());
            Ok::<_, Error>(2)
        };
        assert_eq!(rig.idem.run(inner_key(), Policy::new(), inner).await?, 2);
        assert_eq!(Attempt::current().unwrap().fence(), outer.fence());
        assert_eq!(*outer.key(), key());
        Ok(1)
    });
    assert_eq!(outer.await.unwrap(), 1);
    assert!(Attempt::current().is_none());
    for (key, value) in [(key(), 1), (inner_key(), 2)] {
        let again = rig
            .idem
            .run(key, Policy::new(), async || Err::<u32, _>(failure()))
            .await;
        assert_eq!(again.unwrap(), value);
    }
}

#[tokio::test]
async fn an_unguarded_body_has_no_attempt_also_inside_a_guarded_one() {
    let rig = Rig::new();
    let down = Rig::new();
    down.store
        .all(Fault::fail(idem_core::StoreErrorKind::Unavailable));
    let outer = rig.run(Policy::new(), async || {
        let inner = async || {
            assert!(Attempt::current().is_none());
            Ok(1)
        };
        let result = down.run(Policy::new().run_on_store_error(), inner).await;
        assert!(Attempt::current().is_some());
        result
    });
    assert_eq!(outer.await.unwrap(), 1);
}

#[tokio::test]
async fn a_clone_of_the_attempt_works_in_a_spawned_task() {
    let rig = Rig::new();
    let call = rig.run(Policy::new().own_checkpoint(), async || {
        let attempt = Attempt::current().unwrap();
        let marked = tokio::spawn(async move {
            assert!(Attempt::current().is_none());
            attempt.checkpoint().await
        });
        marked.await.unwrap()?;
        assert!(rig.running().await.unwrap().checkpoint);
        Ok(1)
    });
    assert_eq!(call.await.unwrap(), 1);
}

#[tokio::test]
async fn a_clone_that_outlives_its_attempt_is_refused() {
    let rig = Rig::new();
    let mut kept = None;
    let call = rig.run(Policy::new(), async || {
        kept = Attempt::current();
        Ok(1)
    });
    call.await.unwrap();
    let refused = kept.unwrap().checkpoint().await;
    assert!(
        matches!(refused, Err(Error::LeaseLost { .. })),
        "{refused:?}"
    );
    assert_eq!(rig.counts().lease_lost, 0);
}

#[tokio::test]
async fn a_derived_key_is_the_same_in_each_retry_and_another_for_each_purpose_and_key() {
    let rig = Rig::new();
    let derive = async |key: Key, purpose: &str| {
        let body = async || {
            let derived = Attempt::current().unwrap().derive_key(purpose);
            Err::<(), _>(Error::InvalidKey {
                reason: derived.into(),
            })
        };
        match rig.idem.run(key, Policy::new(), body).await {
            Err(Error::InvalidKey { reason }) => reason.into_owned(),
            other => panic!("{other:?}"),
        }
    };
    let stripe = derive(key(), "stripe").await;
    assert_eq!(derive(key(), "stripe").await, stripe);
    assert_ne!(derive(key(), "bank").await, stripe);
    assert_ne!(derive(inner_key(), "stripe").await, stripe);
    assert!(stripe.len() == 32 && stripe.bytes().all(|byte| byte.is_ascii_hexdigit()));
}
