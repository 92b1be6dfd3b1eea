//! One-time tokens: issued or not, used up or not, and never used twice.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use idem_core::record::Status;
use idem_core::{Error, Policy, Token, Tokens};
use idem_tests::rig::Rig;

use crate::ground::{Ground, on_both};
use crate::scene::{Ends, Failure, Reached, Said, Scene, is};
use crate::sweep::sweep;

const ALICE: &str = "alice@shop.example";
const TTL: Duration = Duration::from_mins(5);

/// Of a call that claims, and settles.
const LEAST: usize = 5;

impl<G: Ground> Scene<G> {
    fn tokens(&self) -> Tokens {
        self.ground().idem().tokens("form")
    }

    async fn issue(&self) -> Result<Token, Error> {
        self.tokens().issue(ALICE, TTL).await
    }

    async fn consume(&self, token: &Token) -> Result<(), Error> {
        self.tokens().consume(token, ALICE).await
    }

    async fn submit(&self, token: &Token) -> Said {
        let (tokens, results) = (self.tokens(), self.results());
        tokens
            .run_with(token, ALICE, self.policy, results, None, || self.body())
            .await
    }

    async fn status(&self, token: &Token) -> Option<Status> {
        let key = self.tokens().key(token).unwrap();
        let record = self.ground().idem().peek(&key).await.unwrap();
        record.map(|record| record.status)
    }
}

#[test]
fn an_issue() {
    sweep(
        3,
        async || Scene::<Rig>::at_hold().await,
        async |scene| scene.issue().await,
        async |scene, issued, _| {
            let records = scene.ground().idem.records("form").await.unwrap();
            assert!(records.len() <= 1 && records.iter().all(|one| one.status == Status::Issued));
            if let Some(token) = issued {
                scene.consume(&token.unwrap()).await.unwrap();
            }
            // Nobody knows the other, and its time is over with all others'.
            scene.ground().clock.advance(TTL);
            let left = scene.ground().idem.records("form").await.unwrap();
            assert!(left.iter().all(|one| one.status != Status::Issued));
        },
    );
}

/// A token is drawn for each scene; the call that is swept has to know it.
fn with_token<G: Ground, T>(
    least: usize,
    policy: Policy,
    ends: Ends,
    call: impl AsyncFn(&Scene<G>, &Token) -> T + Sync,
    then: impl AsyncFn(&Scene<G>, &Token, Option<T>) + Sync,
) {
    let tokens = Mutex::new(HashMap::<u64, Token>::new());
    let of = |scene: &Scene<G>| Token::clone(&tokens.lock().unwrap()[&scene.number]);
    sweep(
        least,
        async || {
            let scene = Scene::new(policy, ends).await;
            let issued = scene.issue().await.unwrap();
            tokens.lock().unwrap().insert(scene.number, issued);
            scene
        },
        async |scene| call(&scene, &of(&scene)).await,
        async |scene, said, _| then(scene, &of(scene), said).await,
    );
}

pub(crate) fn a_consume<G: Ground>() {
    with_token(
        LEAST,
        Policy::new(),
        Ends::Well,
        Scene::<G>::consume,
        async |scene, token, used| {
            assert!(used.as_ref().is_none_or(Result::is_ok), "{used:?}");
            let again = scene.consume(token).await;
            let is_rejected = matches!(again, Err(Error::TokenRejected { .. }));
            assert!(is_rejected || again.is_ok() && used.is_none(), "{again:?}");
            let last = scene.consume(token).await;
            assert!(matches!(last, Err(Error::TokenRejected { .. })), "{last:?}");
        },
    );
}

/// Its body is what the token is for. `at_last` is what whoever comes after its end is told.
fn a_submission<G: Ground>(policy: Policy, at_last: impl Fn(&Said) -> bool + Sync) {
    with_token(
        LEAST,
        policy,
        Ends::Well,
        Scene::<G>::submit,
        async |scene, token, said| {
            assert!(said.is_none_or(|said| said == Ok(1)));
            let (reached, before) = (scene.reached(), scene.bodies.count());
            let next = scene.submit(token).await;
            let ran = scene.bodies.count() > before;
            let is_as_promised = match reached {
                Reached::Nothing => ran && next == Ok(1),
                Reached::End => !ran && at_last(&next),
                _ => !ran && is(&next, "outcome_unknown"),
            };
            assert!(is_as_promised, "{reached:?}: {next:?}");
            scene.has_no_second_effect();
        },
    );
}

pub(crate) fn a_call_with_a_token<G: Ground>() {
    a_submission::<G>(Policy::new(), |said| *said == Ok(1));
}

/// Used up, it is like one that was never issued.
pub(crate) fn a_token_whose_use_is_forgotten<G: Ground>() {
    a_submission::<G>(Policy::new().forget(), |said| is(said, "token_rejected"));
}

pub(crate) fn a_token_that_is_handed_back<G: Ground>() {
    with_token(
        LEAST,
        Policy::new(),
        Ends::Failing,
        Scene::<G>::submit,
        async |scene, token, said| {
            assert!(said.is_none_or(|said| said == Err(Failure::Declined)));
            let reached = scene.reached();
            if let Reached::Nothing | Reached::End = reached {
                assert_eq!(scene.status(token).await, Some(Status::Issued));
            } else {
                let next = scene.submit(token).await;
                assert!(is(&next, "outcome_unknown"), "{reached:?}: {next:?}");
            }
        },
    );
}

on_both! {
    a_consume
    a_call_with_a_token
    a_token_whose_use_is_forgotten
    a_token_that_is_handed_back
}
