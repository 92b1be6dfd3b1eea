//! `#[idempotent(token = …, subject = …)]`, on every store.

use idem_core::store::Store;
use idem_core::{Error, MemoryStore, Outcome, Policy, Recovered, Token, idempotent, observe};
use idem_tests::body::{Bodies, Held, until};
use idem_tests::faulty::Fault;

use crate::rig::{self, FormError, Rig, TTL, is_rejected, on_every_store, told};

/// Who is signed in.
#[derive(Clone, Copy)]
struct User {
    id: u64,
}

const ALICE: User = User { id: 1 };
const MALLORY: User = User { id: 2 };

#[derive(Clone)]
struct Form {
    token: Token,
    amount: u32,
    bodies: Bodies,
    held: Option<Held>,
}

impl Form {
    async fn body(&self) -> u32 {
        let number = self.bodies.add();
        if let Some(held) = &self.held {
            held.stay().await;
        }
        number
    }
}

/// An empty form with a token for Alice.
async fn form<S>(rig: &Rig<S>, prefix: &str) -> Form {
    Form {
        token: rig.idem.tokens(prefix).issue(ALICE.id, TTL).await.unwrap(),
        amount: 5,
        bodies: Bodies::default(),
        held: None,
    }
}

#[idempotent(
    prefix = "order:submit",
    token = "form.token",
    subject = "user.id",
    fingerprint = "form.amount",
    message = "Please open the form again."
)]
async fn submit(user: User, form: Form) -> Result<u32, FormError> {
    match form.amount {
        0 => Err(FormError::SoldOut),
        _ => Ok(form.body().await),
    }
}

// T02, T07
async fn a_form_is_submitted_once_and_corrected_as_often_as_it_fails<S: Store>(rig: &Rig<S>) {
    rig.idem
        .scope(async {
            let form = form(rig, "order:submit").await;
            let with = |amount| Form {
                amount,
                ..form.clone()
            };
            for _ in 0..2 {
                let failed = submit(ALICE, with(0)).await;
                assert_eq!(failed, Err(FormError::SoldOut));
            }
            let rejected = Err(FormError::Guard("token_rejected".into()));
            assert_eq!(submit(MALLORY, with(5)).await, rejected);
            let (first, outcome) = observe(submit(ALICE, with(5))).await;
            assert_eq!((first, outcome), (Ok(1), Outcome::Executed));
            let (again, outcome) = observe(submit(ALICE, with(5))).await;
            assert_eq!((again, outcome), (Ok(1), Outcome::Replayed));
            let other = Err(FormError::Guard("mismatch".into()));
            assert_eq!(submit(ALICE, with(6)).await, other);
            assert_eq!(submit(MALLORY, with(6)).await, rejected);
        })
        .await;
}

on_every_store! {
    a_form_is_submitted_once_and_corrected_as_often_as_it_fails
}

#[idempotent(prefix = "order:once", token = token, subject = user.id, forget = true)]
async fn once(user: User, token: Option<&str>, bodies: &Bodies) -> Result<u32, Error> {
    Ok(bodies.add())
}

#[tokio::test]
async fn a_forgotten_token_is_rejected_like_any_wrong_one() {
    let rig = rig::memory();
    let bodies = Bodies::default();
    let token = form(&rig, "order:once").await.token;
    rig.idem
        .scope(async {
            let used = once(ALICE, Some(token.as_str()), &bodies).await;
            assert_eq!(used.unwrap(), 1);
            let mut answers = Vec::new();
            for token in [Some(token.as_str()), Some("x"), Some(""), None] {
                let before = rig.calls();
                let refused = once(ALICE, token, &bodies).await.unwrap_err();
                let after = rig.calls();
                assert_eq!((after.0 - before.0, after.1 - before.1), (1, 0));
                answers.push(told(&refused));
            }
            assert!(answers.iter().all(|answer| *answer == answers[0]));
            assert_eq!(answers[0].0, "token_rejected");
        })
        .await;
    assert_eq!(bodies.count(), 1);
}

#[idempotent(
    prefix = "order:waits",
    token = form.token,
    subject = user.id,
    in_progress = "wait",
)]
async fn waits(user: User, form: Form) -> Result<u32, Error> {
    Ok(form.body().await)
}

#[tokio::test]
async fn a_second_click_waits_for_the_first_and_a_stranger_does_not() {
    let rig = rig::memory();
    let held = Held::new();
    let form = Form {
        held: Some(held.clone()),
        ..form(&rig, "order:waits").await
    };
    let click = |user| tokio::spawn(rig.idem.scope(waits(user, form.clone())));
    let first = click(ALICE);
    held.entered().await;
    let second = click(ALICE);
    assert!(is_rejected(&click(MALLORY).await.unwrap()));
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    assert_eq!(second.await.unwrap().unwrap(), 1);
    assert_eq!(form.bodies.count(), 1);
}

fn look_up(_: &User, form: &Form) -> impl Future<Output = Result<Recovered<u32>, Error>> {
    std::future::ready(Ok(Recovered::Done(form.amount)))
}

#[idempotent(
    prefix = "order:recovers",
    token = "form.token",
    subject = "user.id",
    recover = look_up
)]
async fn recovers(user: User, form: Form) -> Result<u32, Error> {
    Ok(form.body().await)
}

#[tokio::test]
async fn what_a_dropped_submission_did_is_looked_up_by_its_own_subject_only() {
    let rig = rig::memory();
    let held = Held::new();
    let form = Form {
        held: Some(held.clone()),
        ..form(&rig, "order:recovers").await
    };
    let dropped = tokio::spawn(rig.idem.scope(recovers(ALICE, form.clone())));
    held.entered().await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    let retry = |user| rig.idem.scope(recovers(user, form.clone()));
    assert!(is_rejected(&retry(MALLORY).await));
    // The store hears of the drop in the background.
    until("it is looked up", async || {
        !matches!(retry(ALICE).await, Err(Error::InProgress { .. }))
    })
    .await;
    assert_eq!(retry(ALICE).await.unwrap(), 5);
    assert_eq!(form.bodies.count(), 1);
}

#[tokio::test]
async fn a_careless_engine_lets_no_token_in_unchecked() {
    let limit = std::time::Duration::from_millis(100);
    let rig = Rig::with_limit(MemoryStore::new(), limit);
    let careless = Policy::new().run_on_store_error().run_on_missing_key();
    let idem = idem_core::Idempotency::builder(rig.store.clone())
        .limit(limit)
        .defaults(careless)
        .build()
        .unwrap();
    rig.store
        .all(Fault::fail(idem_core::StoreErrorKind::Unavailable));
    let bodies = Bodies::default();
    let refused = idem.scope(once(ALICE, Some("x"), &bodies)).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    assert_eq!(bodies.count(), 0);
}
