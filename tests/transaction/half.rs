//! A body that ends in any other way than by success leaves nothing half, also where its caller
//! goes on and commits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use idem_tests::body::Held;

use crate::base::{Base, Place};
use crate::shop::{Then, pay};

// Q04
pub(crate) async fn a_body_that_fails_at_its_end_and_is_retried_has_one_effect<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 7).await.unwrap();
    let failed = pay(&place, &mut tx, 1, Then::Fail).await;
    assert_eq!(failed.unwrap_err().to_string(), "declined");
    commits_without_the_body(&place, tx).await;
}

// N32
pub(crate) async fn a_body_that_panics_leaves_nothing<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 7).await.unwrap();
    {
        let mut call = pin!(pay(&place, &mut tx, 1, Then::Panic));
        let panicked = std::future::poll_fn(|context| {
            match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(_)) => Poll::Ready(false),
                Err(_) => Poll::Ready(true),
            }
        });
        assert!(panicked.await);
    }
    commits_without_the_body(&place, tx).await;
}

// N32
pub(crate) async fn a_body_that_is_dropped_leaves_nothing<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 7).await.unwrap();
    let held = Held::new();
    tokio::select! {
        _ = pay(&place, &mut tx, 1, Then::Stay(held.clone())) => panic!("it stays"),
        () = held.entered() => {}
    }
    commits_without_the_body(&place, tx).await;
}

// N32
pub(crate) async fn a_time_out_around_the_call_leaves_nothing<D: Base>() {
    let place = D::place().await;
    for millis in [0, 1, 2, 5, 10, 20, 50] {
        let mut tx = place.begin().await;
        let call = pay(&place, &mut tx, millis, Then::Stay(Held::new()));
        let elapsed =
            tokio::time::timeout(Duration::from_millis(millis.unsigned_abs()), call).await;
        assert!(elapsed.is_err());
        D::add(&mut tx, 7).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(place.effects().await, [7; 7]);
}

/// Commits what else is in `tx`; then the key is free.
async fn commits_without_the_body<D: Base>(
    place: &Place<D>,
    mut tx: sqlx::Transaction<'static, D>,
) {
    D::add(&mut tx, 8).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [7, 8]);
    let mut tx = place.begin().await;
    pay(place, &mut tx, 1, Then::End).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 7, 8]);
}
