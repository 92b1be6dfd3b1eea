//! Who has no use of a token gets it back.

use idem_core::record::Status;
use idem_core::store::Store;
use idem_core::{Changes, Error, Fingerprint, Policy, Results};
use idem_tests::body::{Bodies, Held};
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{self, ALICE, Rig, is_rejected, on_every_store};

// T02, N10
async fn a_body_that_failed_hands_it_back_also_for_a_corrected_form<S: Store>(rig: &Rig<S>) {
    let (token, results) = (rig.issue().await, Results::stored());
    let submit = async |text: &str, result: Result<u32, Error>| {
        let form = Some(Fingerprint::of(text).unwrap());
        rig.tokens
            .run_with(&token, ALICE, Policy::new(), results, form, async || result)
            .await
    };
    let invalid = || Error::MissingKey {
        part: "the amount".into(),
    };
    let failed = submit("amount=", Err(invalid())).await;
    assert!(matches!(failed, Err(Error::MissingKey { .. })));
    assert_eq!(rig.status(&token).await, Some(Status::Issued));
    assert_eq!(submit("amount=5", Ok(5)).await.unwrap(), 5);
    // Done: now the form counts.
    assert_eq!(submit("amount=5", Ok(6)).await.unwrap(), 5);
    let other = submit("amount=7", Ok(7)).await;
    assert!(matches!(other, Err(Error::Mismatch { .. })), "{other:?}");
}

async fn a_panic_and_a_drop_in_the_body_hold_it_until_somebody_knows<S: Store>(rig: &Rig<S>) {
    let (token, bodies) = (rig.issue().await, Bodies::default());
    let (tokens, presented) = (rig.tokens.clone(), token.clone());
    let panics = tokio::spawn(async move {
        let body = async || -> Result<u32, Error> { panic!("a panic that the test asked for") };
        tokens.run(&presented, ALICE, Policy::new(), body).await
    });
    assert!(panics.await.unwrap_err().is_panic());
    rig.until_abandoned(&token).await;
    let unknown = rig.submit(&token, &bodies).await;
    assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })));

    // A body that says where its effects begin, and did not come there, has used up nothing.
    let token = rig.issue().await;
    let held = Held::new();
    let dropped = rig
        .hold(&token, Policy::new().own_checkpoint(), &held)
        .await;
    dropped.abort();
    rig.until_abandoned(&token).await;
    assert_eq!(rig.submit(&token, &bodies).await.unwrap(), 1);
}

on_every_store! {
    a_body_that_failed_hands_it_back_also_for_a_corrected_form
    a_panic_and_a_drop_in_the_body_hold_it_until_somebody_knows
}

#[tokio::test]
async fn a_call_that_is_dropped_before_its_body_hands_it_back() {
    let (rig, bodies) = (rig::memory(), Bodies::default());
    let token = rig.issue().await;
    rig.store.next(Verb::Claim, [Fault::swallow_the_reply()]);
    let (tokens, presented) = (rig.tokens.clone(), token.clone());
    let dropped = tokio::spawn(async move {
        let body = async || -> Result<u32, Error> { panic!("the body ran") };
        tokens.run(&presented, ALICE, Policy::new(), body).await
    });
    rig.until_status(&token, Status::Processing).await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    rig.until_status(&token, Status::Issued).await;
    assert_eq!(rig.submit(&token, &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn one_that_was_taken_back_in_time_is_rejected_and_one_in_use_is_left_alone() {
    let rig = rig::memory();
    let token = rig.issue().await;
    assert_eq!(rig.tokens.forget(&token).await.unwrap(), Changes::Done);
    assert_eq!(rig.tokens.forget(&token).await.unwrap(), Changes::Absent);
    assert!(is_rejected(&rig.submit(&token, &Bodies::default()).await));

    let (token, held) = (rig.issue().await, Held::new());
    let running = rig.hold(&token, Policy::new(), &held).await;
    assert_eq!(rig.tokens.forget(&token).await.unwrap(), Changes::Changed);
    held.release();
    assert_eq!(running.await.unwrap().unwrap(), 1);
}
