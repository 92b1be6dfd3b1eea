//! What a wrong token is told: always the same, in the same number of round trips.

use std::time::Duration;

use idem_core::record::Status;
use idem_core::store::Store;
use idem_core::{Error, OnError, Policy, Results, Token};
use idem_tests::body::{Bodies, Held, until};

use crate::rig::{ALICE, FormError, MALLORY, Rig, is_rejected, on_every_store, told};

/// A body that must not run.
async fn never<S: Store>(rig: &Rig<S>, token: Option<&str>, subject: &str) -> Error {
    let body = async || -> Result<u32, Error> { panic!("the body ran") };
    let refused = rig.tokens.run(token, subject, Policy::new(), body).await;
    refused.unwrap_err()
}

async fn unknown_used_expired_foreign_and_malformed_get_one_answer<S: Store>(rig: &Rig<S>) {
    let used = rig.issue().await;
    rig.tokens.consume(&used, ALICE).await.unwrap();
    let expired = rig
        .tokens
        .issue(ALICE, Duration::from_millis(20))
        .await
        .unwrap();
    until("it has expired", async || {
        rig.record(&expired).await.is_none()
    })
    .await;
    let taken_back = rig.issue().await;
    rig.tokens.forget(&taken_back).await.unwrap();
    let foreign = rig.issue().await;
    let done = rig.issue().await;
    rig.submit(&done, &Bodies::default()).await.unwrap();
    let of_another_form = rig.idem.tokens("order:cancel");
    let of_another_form = of_another_form.issue(ALICE, Duration::from_mins(1)).await;
    let of_another_form = of_another_form.unwrap();
    let hash = rig.tokens.key(&foreign).unwrap().as_str().to_owned();
    let (_, hash) = hash.split_once("::").unwrap();
    let longer = format!("{foreign} ");
    let upper = foreign.as_str().to_uppercase();
    let endless = "x".repeat(100_000);

    let unknown = "00112233445566778899aabbccddeeff";
    let the_answer = told(&never(rig, Some(unknown), ALICE).await);
    assert_eq!((the_answer.0, the_answer.3), ("token_rejected", 403));
    for (what, token, subject) in [
        ("used and forgotten", Some(used.as_str()), ALICE),
        ("expired", Some(expired.as_str()), ALICE),
        ("taken back", Some(taken_back.as_str()), ALICE),
        ("foreign", Some(foreign.as_str()), MALLORY),
        ("foreign and done", Some(done.as_str()), MALLORY),
        ("of another form", Some(of_another_form.as_str()), ALICE),
        ("no token", None, ALICE),
        ("empty", Some(""), ALICE),
        ("blank", Some(" "), ALICE),
        ("not of this alphabet", Some("☂:{}~%"), ALICE),
        ("the hash that the store has", Some(hash), ALICE),
        ("with something behind it", Some(&longer), ALICE),
        ("in upper case", Some(&upper), ALICE),
        ("endless", Some(&endless), ALICE),
    ] {
        let before = rig.calls();
        let error = never(rig, token, subject).await;
        let after = rig.calls();
        assert_eq!(told(&error), the_answer, "{what}");
        let calls = (after.0 - before.0, after.1 - before.1);
        assert_eq!(calls, (1, 0), "{what}: one claim, and nothing else");
        let consumed = rig.tokens.consume(token, subject).await;
        assert_eq!(told(&consumed.unwrap_err()), the_answer, "{what}");
    }
    rig.tokens.consume(&foreign, ALICE).await.unwrap();
}

/// Nobody but Alice gets in, and nobody learns or changes anything.
async fn strangers_are_rejected<S: Store>(rig: &Rig<S>, token: &Token) {
    let before = rig.slot(token).await;
    let refused = never(rig, Some(token.as_str()), MALLORY).await;
    assert!(matches!(refused, Error::TokenRejected { .. }), "{refused}");
    assert!(is_rejected(&rig.tokens.consume(token, MALLORY).await));
    let key = rig.tokens.key(token).unwrap();
    let without = rig.idem.run(key.clone(), Policy::new(), async || Ok(1));
    assert!(is_rejected(&without.await));
    assert!(is_rejected(&rig.idem.refuse(&key).await));
    assert_eq!(rig.slot(token).await, before);
}

// N28
async fn a_foreign_subject_is_rejected_in_every_status<S: Store>(rig: &Rig<S>) {
    let token = rig.issue().await;
    strangers_are_rejected(rig, &token).await;

    let held = Held::new();
    let running = rig.hold(&token, Policy::new(), &held).await;
    assert_eq!(rig.status(&token).await, Some(Status::Processing));
    strangers_are_rejected(rig, &token).await;
    let own = rig.submit(&token, &Bodies::default()).await;
    assert!(matches!(own, Err(Error::InProgress { .. })), "{own:?}");
    held.release();
    running.await.unwrap().unwrap();
    assert_eq!(rig.status(&token).await, Some(Status::Success));
    strangers_are_rejected(rig, &token).await;

    let token = rig.issue().await;
    let dies = rig.hold(&token, Policy::new(), &held).await;
    dies.abort();
    rig.until_abandoned(&token).await;
    strangers_are_rejected(rig, &token).await;
    let own = rig.submit(&token, &Bodies::default()).await;
    assert!(matches!(own, Err(Error::OutcomeUnknown { .. })), "{own:?}");

    let token = rig.issue().await;
    let results = Results::<u32, FormError>::stored()
        .on_error(OnError::Replay)
        .replay_errors();
    let fails = async || Err(FormError::SoldOut);
    let failed = rig
        .tokens
        .run_with(&token, ALICE, Policy::new(), results, None, fails);
    assert_eq!(failed.await.unwrap_err(), FormError::SoldOut);
    assert_eq!(rig.status(&token).await, Some(Status::Failed));
    strangers_are_rejected(rig, &token).await;
}

on_every_store! {
    unknown_used_expired_foreign_and_malformed_get_one_answer
    a_foreign_subject_is_rejected_in_every_status
}
