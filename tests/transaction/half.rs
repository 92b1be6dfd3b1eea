//! A body that ends in any other way than by success leaves nothing half, also where its caller
//! goes on and commits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use idem_core::{Error, Key, Policy, StoreErrorKind};
use idem_tests::body::Held;
use sqlx::Transaction;

use crate::base::{Base, Place};
use crate::shop::{Final, Then, decline, decline_both, pay};

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

/// Polls a call so many times and drops it; whether it had ended.
pub(crate) async fn drop_at<F: Future>(polls: usize, call: F) -> bool {
    let mut call = pin!(call);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        call.as_mut().poll(context).map(|_| true)
    })
    .await
}

// N32
pub(crate) async fn a_call_that_is_dropped_anywhere_leaves_all_or_nothing<D: Base>() {
    is_dropped_anywhere::<D>(false, async |place| place.begin().await).await;
}

// N32
pub(crate) async fn a_call_that_is_dropped_anywhere_leaves_what_was_done_after_a_failed_one<
    D: Base,
>() {
    is_dropped_anywhere::<D>(true, async |place| place.begin().await).await;
}

/// A failed call leaves a savepoint of the name that the next one has.
pub(crate) async fn is_dropped_anywhere<D: Base>(
    after_a_failed_one: bool,
    begin: impl AsyncFn(&Place<D>) -> Transaction<'static, D>,
) {
    let place = D::place().await;
    for polls in 0.. {
        let number = 100 + i64::try_from(polls).unwrap();
        let mut tx = begin(&place).await;
        if after_a_failed_one {
            let failed = pay(&place, &mut tx, -1, Then::Fail).await;
            failed.unwrap_err();
        }
        D::add(&mut tx, 6).await.unwrap();
        let has_ended = drop_at(polls, pay(&place, &mut tx, number, Then::End)).await;
        let went_on = D::add(&mut tx, 8).await;
        let committed = match went_on {
            Ok(()) => tx.commit().await,
            // It may have to be rolled back, but is told so.
            Err(error) => tx.rollback().await.and(Err(error)),
        };
        let mut found = place.effects().await;
        let before = found.len();
        found.retain(|&effect| effect != number);
        let was_kept = found.len() < before;
        let expected: &[i64] = if committed.is_ok() { &[6, 8] } else { &[] };
        assert_eq!(found, expected, "after {polls} polls: {committed:?}");
        assert!(!was_kept || committed.is_ok());
        D::clear(&place.pool).await;
        // The record is there if the effect is.
        let runs = place.bodies.count();
        let mut tx = begin(&place).await;
        pay(&place, &mut tx, number, Then::End).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(
            place.bodies.count() == runs,
            was_kept,
            "after {polls} polls"
        );
        D::clear(&place.pool).await;
        if has_ended {
            assert!(was_kept);
            return;
        }
    }
}

/// How a call ends that keeps no effect.
#[derive(Debug, Clone, Copy)]
enum Without {
    Replay,
    Error,
    /// Which is kept in its place.
    KeptError,
}

async fn call_without<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
    end: Without,
) {
    match end {
        Without::Replay => drop(pay(place, tx, number, Then::End).await),
        Without::Error => drop(pay(place, tx, number, Then::Fail).await),
        Without::KeptError => drop(decline(place, tx, number).await),
    }
}

// N32
pub(crate) async fn a_call_without_an_effect_that_is_dropped_anywhere_leaves_what_is_around_it<
    D: Base,
>() {
    for end in [Without::Replay, Without::Error, Without::KeptError] {
        let place = D::place().await;
        let mut has_ended = false;
        for number in 0.. {
            if has_ended {
                break;
            }
            if let Without::Replay = end {
                let mut tx = place.begin().await;
                pay(&place, &mut tx, number, Then::End).await.unwrap();
                tx.commit().await.unwrap();
                D::clear(&place.pool).await;
            }
            let mut tx = place.begin().await;
            D::add(&mut tx, -6).await.unwrap();
            let polls = usize::try_from(number).unwrap();
            has_ended = drop_at(polls, call_without(&place, &mut tx, number, end)).await;
            let committed = match D::add(&mut tx, -8).await {
                Ok(()) => tx.commit().await,
                Err(error) => tx.rollback().await.and(Err(error)),
            };
            let expected: &[i64] = if committed.is_ok() { &[-8, -6] } else { &[] };
            let told = format!("{end:?}, after {polls} polls: {committed:?}");
            assert_eq!(place.effects().await, expected, "{told}");
            assert!(!has_ended || committed.is_ok(), "{told}");
            D::clear(&place.pool).await;
            // Nothing else is held or left: the next call has its own end.
            let runs = place.bodies.count();
            let mut tx = place.begin().await;
            let runs_again = match end {
                Without::Replay => {
                    pay(&place, &mut tx, number, Then::End).await.unwrap();
                    false
                }
                Without::Error => {
                    pay(&place, &mut tx, number, Then::End).await.unwrap();
                    true
                }
                Without::KeptError => {
                    let declined = decline(&place, &mut tx, number).await.unwrap_err();
                    let Final::Declined(run) = declined else {
                        panic!("{told}: {declined:?}");
                    };
                    assert!(!has_ended || run <= runs, "{told}");
                    run > runs
                }
            };
            tx.commit().await.unwrap();
            assert_eq!(place.bodies.count() > runs, runs_again, "{told}");
            let is_effect = matches!(end, Without::Error);
            assert_eq!(
                place.effects().await.len(),
                usize::from(is_effect),
                "{told}"
            );
            D::clear(&place.pool).await;
        }
    }
}

pub(crate) async fn a_body_within_its_own_body_has_no_second_effect<D: Base>() {
    let place = D::place().await;
    let key = || Key::new("inner", "1").unwrap();
    let mut tx = place.begin().await;
    let outer = async |tx: &mut Transaction<'_, D>| {
        D::add(tx, 1).await?;
        let inner = async |tx: &mut Transaction<'_, D>| {
            D::add(tx, 2).await?;
            anyhow::Ok(place.bodies.add())
        };
        place.idem.run_in(tx, key(), Policy::new(), inner).await?;
        anyhow::Ok(place.bodies.add())
    };
    let result = place
        .idem
        .run_in(&mut tx, key(), Policy::new(), outer)
        .await;
    tx.commit().await.unwrap();
    // Nothing was done, and nobody is told that it was.
    let error = result.unwrap_err();
    let Some(Error::Store { source }) = error.downcast_ref() else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), StoreErrorKind::Protocol);
    assert_eq!(place.bodies.count(), 0);
    assert_eq!(place.effects().await.len(), 0);
}

pub(crate) async fn a_body_within_its_own_body_further_out_has_no_second_effect<D: Base>() {
    let place = D::place().await;
    let key = |name| Key::new("inner", name).unwrap();
    let mut tx = place.begin().await;
    let outermost = async |tx: &mut Transaction<'_, D>| {
        let between = async |tx: &mut Transaction<'_, D>| {
            let innermost = async |tx: &mut Transaction<'_, D>| anyhow::Ok(D::add(tx, 2).await?);
            let run = place.idem.run_in(tx, key("1"), Policy::new(), innermost);
            run.await
        };
        let run = place.idem.run_in(tx, key("2"), Policy::new(), between);
        run.await
    };
    let result = place
        .idem
        .run_in(&mut tx, key("1"), Policy::new(), outermost)
        .await;
    tx.commit().await.unwrap();
    result.unwrap_err();
    assert_eq!(place.effects().await.len(), 0);
}

pub(crate) async fn an_error_takes_back_what_a_body_in_the_body_recorded<D: Base>() {
    let place = D::place().await;
    for _ in 0..2 {
        let mut tx = place.begin().await;
        let both = decline_both(&place, &mut tx, 1).await;
        assert_eq!(both, Err(Final::Declined(1)));
        let inner = decline(&place, &mut tx, 1).await;
        assert_eq!(inner, Err(Final::Declined(2)));
        tx.commit().await.unwrap();
    }
    assert_eq!(place.bodies.count(), 2);
    assert!(place.effects().await.is_empty());
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
