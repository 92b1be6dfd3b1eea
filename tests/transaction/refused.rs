//! A Cancel that comes before its Try, or too late.

use idem_core::{Error, Key};

use crate::base::{Base, Place};
use crate::shop::{Then, pay, refusal};

fn key() -> Key {
    Key::new("pay", 1_i64).unwrap()
}

async fn is_refused<D: Base>(place: &Place<D>) {
    let mut tx = place.begin().await;
    let refused = refusal(pay(place, &mut tx, 1, Then::End).await);
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    assert!(!refused.is_retryable());
    D::add(&mut tx, 7).await.unwrap();
    tx.commit().await.unwrap();
}

pub(crate) async fn a_try_that_comes_after_its_cancel_is_refused<D: Base>() {
    let place = D::place().await;
    place.leases.refuse(&key()).await.unwrap();
    is_refused(&place).await;
    place.leases.refuse(&key()).await.unwrap();
    is_refused(&place).await;
    assert_eq!(place.bodies.count(), 0);
    assert_eq!(place.effects().await, [7, 7]);
}

pub(crate) async fn a_cancel_that_comes_after_its_try_is_told<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    pay(&place, &mut tx, 1, Then::End).await.unwrap();
    // Whether the transaction commits is not known yet.
    let open = place.leases.refuse(&key()).await.unwrap_err();
    assert!(matches!(open, Error::Store { .. }), "{open}");
    assert!(open.is_retryable());
    tx.commit().await.unwrap();
    let late = place.leases.refuse(&key()).await.unwrap_err();
    assert!(matches!(late, Error::Duplicate { .. }), "{late}");

    let mut tx = place.begin().await;
    assert_eq!(pay(&place, &mut tx, 1, Then::End).await.unwrap(), "run 1");
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1]);
}

pub(crate) async fn a_try_that_was_rolled_back_can_be_cancelled<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    pay(&place, &mut tx, 1, Then::End).await.unwrap();
    tx.rollback().await.unwrap();
    place.leases.refuse(&key()).await.unwrap();
    is_refused(&place).await;
    assert_eq!(place.effects().await, [7]);
}
