//! Beside attempts in lease mode, in the same table.

use std::time::Duration;

use idem_core::{Error, Idempotency, Key, Policy};
use idem_tests::body::{Held, until};

use crate::base::{Base, Place};
use crate::shop::{Then, pay, refusal};

pub(crate) fn key() -> Key {
    Key::new("pay", 1_i64).unwrap()
}

/// A run of the same request in lease mode, until its body stays.
async fn lease_until_it_stays(leases: &Idempotency) -> impl Future<Output = ()> + use<> {
    let (held, leases) = (Held::new(), leases.clone());
    let staying = held.clone();
    let mut run = Box::pin(async move {
        let body = async || {
            staying.stay().await;
            anyhow::Ok(String::new())
        };
        leases.run(key(), Policy::new(), body).await.unwrap();
    });
    tokio::select! {
        () = &mut run => panic!("it stays"),
        () = held.entered() => {}
    }
    run
}

async fn refused<D: Base>(place: &Place<D>) -> Error {
    let mut tx = place.begin().await;
    let refused = refusal(pay(place, &mut tx, 1, Then::End).await);
    tx.commit().await.unwrap();
    refused
}

pub(crate) async fn a_live_attempt_is_in_progress<D: Base>() {
    let place = D::place().await;
    let _attempt = lease_until_it_stays(&place.leases).await;
    let refused = refused(&place).await;
    assert!(matches!(refused, Error::InProgress { .. }), "{refused}");
    assert!(refused.retry_after().unwrap() > Duration::from_secs(10));
    assert!(place.effects().await.is_empty());
}

// N13
pub(crate) async fn a_failed_attempt_is_retried_and_what_it_gives_is_replayed_there<D: Base>() {
    let place = D::place().await;
    let lease = async |body: Result<String, anyhow::Error>| {
        place.leases.run(key(), Policy::new(), async || body).await
    };
    assert!(lease(Err(anyhow::anyhow!("declined"))).await.is_err());
    let mut tx = place.begin().await;
    assert_eq!(pay(&place, &mut tx, 1, Then::End).await.unwrap(), "run 1");
    tx.commit().await.unwrap();
    assert_eq!(lease(Ok("run 2".into())).await.unwrap(), "run 1");
    assert_eq!(place.effects().await, [1]);
}

pub(crate) async fn an_attempt_that_was_dropped_is_held<D: Base>() {
    let place = D::place().await;
    drop(lease_until_it_stays(&place.leases).await);
    until("the abandoned attempt is known", async || {
        matches!(refused(&place).await, Error::OutcomeUnknown { .. })
    })
    .await;
    assert!(place.effects().await.is_empty());
}
