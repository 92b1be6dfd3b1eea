//! What is true of one caller after the other.

use std::time::Duration;

use idem_core::{Error, Key, Outcome, Policy, observe};
use sqlx::Transaction;

use crate::base::Base;
use crate::shop::{Final, Then, decline, pay, pay_once, refusal};

pub(crate) async fn a_body_runs_once_and_is_replayed<D: Base>() {
    let place = D::place().await;
    for (outcome, run) in [
        (Outcome::Executed, 1),
        (Outcome::Replayed, 1),
        (Outcome::Replayed, 1),
    ] {
        let mut tx = place.begin().await;
        let (result, observed) = observe(pay(&place, &mut tx, 1, Then::End)).await;
        assert_eq!(result.unwrap(), "run 1");
        assert_eq!(observed, outcome);
        tx.commit().await.unwrap();
        assert_eq!(place.bodies.count(), run);
    }
    assert_eq!(place.effects().await, [1]);
}

pub(crate) async fn a_duplicate_in_the_same_transaction_is_replayed<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    for _ in 0..3 {
        let result = pay(&place, &mut tx, 1, Then::End).await;
        assert_eq!(result.unwrap(), "run 1");
    }
    pay(&place, &mut tx, 2, Then::End).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 2]);
}

// Q07
pub(crate) async fn a_rollback_frees_the_key<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    pay(&place, &mut tx, 1, Then::End).await.unwrap();
    tx.rollback().await.unwrap();
    assert!(place.effects().await.is_empty());
    let mut tx = place.begin().await;
    assert_eq!(pay(&place, &mut tx, 1, Then::End).await.unwrap(), "run 2");
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1]);
}

// Q01
pub(crate) async fn a_duplicate_leaves_the_transaction_usable<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    pay_once(&place, &mut tx, 1, Then::End).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = place.begin().await;
    D::add(&mut tx, 7).await.unwrap();
    let refused = refusal(pay_once(&place, &mut tx, 1, Then::End).await);
    assert!(matches!(refused, Error::Duplicate { .. }), "{refused}");
    D::add(&mut tx, 8).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 7, 8]);
}

pub(crate) async fn an_error_that_is_final_is_replayed_without_its_effect<D: Base>() {
    let place = D::place().await;
    for _ in 0..2 {
        let mut tx = place.begin().await;
        let declined = decline(&place, &mut tx, 1).await;
        assert_eq!(declined, Err(Final::Declined(1)));
        D::add(&mut tx, 7).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(place.bodies.count(), 1);
    assert_eq!(place.effects().await, [7, 7]);
}

pub(crate) async fn the_form_for_programs_does_the_same<D: Base>() {
    let place = D::place().await;
    for _ in 0..2 {
        let mut tx = place.begin().await;
        let key = Key::new("program", "1").unwrap();
        let body = async |tx: &mut Transaction<'_, D>| {
            D::add(tx, 1).await?;
            anyhow::Ok(place.bodies.add())
        };
        let result = place.idem.run_in(&mut tx, key, Policy::new(), body).await;
        assert_eq!(result.unwrap(), 1);
        tx.commit().await.unwrap();
    }
    assert_eq!(place.effects().await, [1]);
}

pub(crate) async fn a_record_ends_when_its_time_is_over<D: Base>() {
    let place = D::place().await;
    let policy = Policy::new().expire(Duration::from_millis(1));
    for run in 1..=2 {
        let mut tx = place.begin().await;
        let key = Key::new("brief", "1").unwrap();
        let body = async |_: &mut Transaction<'_, D>| anyhow::Ok(place.bodies.add());
        let result = place.idem.run_in(&mut tx, key, policy, body).await;
        assert_eq!(result.unwrap(), run);
        tx.commit().await.unwrap();
        // By the clock that it counts from, which is this machine's everywhere.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn a_record_that_is_replaced_leaves_others_as_they_are<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    let first = pay(&place, &mut tx, 1, Then::End).await.unwrap();
    tx.commit().await.unwrap();
    let policy = Policy::new().expire(Duration::from_millis(1));
    for _ in 0..2 {
        let mut tx = place.begin().await;
        let key = Key::new("brief", "1").unwrap();
        let body = async |_: &mut Transaction<'_, D>| anyhow::Ok(());
        let result = place.idem.run_in(&mut tx, key, policy, body).await;
        result.unwrap();
        tx.commit().await.unwrap();
        // By the clock that it counts from, which is this machine's everywhere.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut tx = place.begin().await;
    let again = pay(&place, &mut tx, 1, Then::End).await.unwrap();
    assert_eq!(again, first);
}

pub(crate) async fn a_body_may_take_longer_than_its_record_lives<D: Base>() {
    let place = D::place().await;
    let policy = Policy::new().expire(Duration::from_millis(1));
    let mut tx = place.begin().await;
    let key = Key::new("slow", "1").unwrap();
    let body = async |tx: &mut Transaction<'_, D>| {
        D::add(tx, 1).await?;
        // By the clock that it counts from, which is this machine's everywhere.
        tokio::time::sleep(Duration::from_millis(20)).await;
        anyhow::Ok(place.bodies.add())
    };
    let result = place.idem.run_in(&mut tx, key, policy, body).await;
    assert_eq!(result.unwrap(), 1);
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1]);
}

pub(crate) async fn a_body_whose_last_act_is_another_call_keeps_both<D: Base>() {
    let place = D::place().await;
    for run in 1..=2 {
        let mut tx = place.begin().await;
        let key = Key::new("outer", "1").unwrap();
        let outer = async |tx: &mut Transaction<'_, D>| {
            D::add(tx, 1).await?;
            pay(&place, tx, 2, Then::End).await
        };
        let result = place.idem.run_in(&mut tx, key, Policy::new(), outer).await;
        assert_eq!(result.unwrap(), "run 1");
        assert_eq!(pay(&place, &mut tx, 2, Then::End).await.unwrap(), "run 1");
        D::add(&mut tx, 7).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(place.effects().await.len(), 2 + run);
    }
    assert_eq!(place.effects().await, [1, 2, 7, 7]);
}

pub(crate) async fn of_many_calls_in_one_transaction_each_keeps_its_own<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    for number in 0..60 {
        let then = if number % 3 == 0 {
            Then::Fail
        } else {
            Then::End
        };
        let is_kept = pay(&place, &mut tx, number, then).await.is_ok();
        assert_eq!(is_kept, number % 3 != 0);
    }
    tx.commit().await.unwrap();
    let kept: Vec<i64> = (0..60).filter(|number| number % 3 != 0).collect();
    assert_eq!(place.effects().await, kept);
}
