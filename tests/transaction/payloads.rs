//! One key, two payloads.

use anyhow::Result;
use idem_core::{Error, idempotent};
use sqlx::Transaction;

use crate::base::{Base, Place};
use crate::shop::refusal;

#[idempotent(prefix = "transfer", key = number, fingerprint = "amount", tx = tx, engine = place.idem)]
async fn transfer<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
    amount: i64,
) -> Result<String> {
    let run = place.bodies.add();
    D::add(tx, amount).await?;
    Ok(format!("run {run}"))
}

pub(crate) async fn another_payload_is_refused_and_the_first_is_replayed<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    transfer(&place, &mut tx, 1, 100).await.unwrap();
    // Also where the first is not committed yet.
    let refused = refusal(transfer(&place, &mut tx, 1, 200).await);
    assert!(matches!(refused, Error::Mismatch { .. }), "{refused}");
    tx.commit().await.unwrap();

    let mut tx = place.begin().await;
    let refused = refusal(transfer(&place, &mut tx, 1, 200).await);
    assert!(matches!(refused, Error::Mismatch { .. }), "{refused}");
    assert!(!refused.is_retryable());
    // The refusal leaves the transaction as it was.
    D::add(&mut tx, 7).await.unwrap();
    let replayed = transfer(&place, &mut tx, 1, 100).await;
    assert_eq!(replayed.unwrap(), "run 1");
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [7, 100]);
}

pub(crate) async fn a_payload_that_was_rolled_back_binds_nobody<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    transfer(&place, &mut tx, 1, 100).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = place.begin().await;
    transfer(&place, &mut tx, 1, 200).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [200]);
}
