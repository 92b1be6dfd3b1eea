//! A token is used once.

use std::sync::Arc;

use idem_core::store::Store;
use idem_core::{Error, Policy, Token};
use idem_tests::body::Bodies;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::rig::{ALICE, Rig, is_rejected, on_every_store};

const CALLS: u32 = 200;

// T01
async fn of_200_at_once_one_consumes_and_the_others_are_rejected<S: Store>(rig: &Rig<S>) {
    let token = rig.issue().await;
    let results = at_once(&token, |token| {
        let tokens = rig.tokens.clone();
        async move { tokens.consume(&token, ALICE).await }
    })
    .await;
    let accepted = results.iter().filter(|result| result.is_ok()).count();
    let rejected = results.iter().filter(|result| is_rejected(result)).count();
    assert_eq!((accepted, rejected), (1, 199), "{results:?}");
}

// T01, T07
async fn of_200_at_once_one_runs_and_the_others_get_its_result<S: Store>(rig: &Rig<S>) {
    let (token, bodies) = (rig.issue().await, Bodies::default());
    let results = at_once(&token, |token| {
        let (tokens, bodies) = (rig.tokens.clone(), bodies.clone());
        async move {
            let waits = Policy::new().wait_in_progress();
            tokens
                .run(&token, ALICE, waits, async || Ok(bodies.add()))
                .await
        }
    })
    .await;
    assert_eq!(bodies.count(), 1);
    let results: Result<Vec<u32>, Error> = results.into_iter().collect();
    assert_eq!(results.unwrap(), [1; 200]);
}

async fn at_once<T, F>(token: &Token, call: impl Fn(Token) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(CALLS as usize));
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (barrier, call) = (barrier.clone(), call(token.clone()));
        calls.spawn(async move {
            barrier.wait().await;
            call.await
        });
    }
    calls.join_all().await
}

// T07
async fn a_second_use_is_replayed_or_when_forgotten_rejected<S: Store>(rig: &Rig<S>) {
    let (token, bodies) = (rig.issue().await, Bodies::default());
    for _ in 0..2 {
        assert_eq!(rig.submit(&token, &bodies).await.unwrap(), 1);
    }
    let token = rig.issue().await;
    let forgets = async || {
        let body = async || Ok(bodies.add());
        let policy = Policy::new().forget();
        rig.tokens.run(&token, ALICE, policy, body).await
    };
    assert_eq!(forgets().await.unwrap(), 2);
    assert!(is_rejected(&forgets().await));
    assert!(is_rejected(&rig.submit(&token, &bodies).await));
    assert_eq!(bodies.count(), 2);
}

on_every_store! {
    of_200_at_once_one_consumes_and_the_others_are_rejected
    of_200_at_once_one_runs_and_the_others_get_its_result
    a_second_use_is_replayed_or_when_forgotten_rejected
}
