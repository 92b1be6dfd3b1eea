//! A body that ends its caller's transaction: what it did is kept, and nobody can say so.

use idem_core::{Error, Key, Policy, idempotent};
use sqlx::{Executor, Transaction};

use crate::base::{Base, Place};
use crate::shop::refusal;

#[idempotent(prefix = "no_key", key = number, tx = tx, engine = place.idem, on_missing_key = "run")]
async fn without_key<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: Option<i64>,
    end: &'static str,
) -> anyhow::Result<String>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let _ = place;
    ends(tx, end).await
}

async fn ends<D: Base>(tx: &mut Transaction<'_, D>, end: &'static str) -> anyhow::Result<String>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    D::add(tx, 1).await?;
    sqlx::raw_sql(end).execute(&mut **tx).await?;
    Ok("paid".to_owned())
}

/// What is told of a body that says `end`. It has one effect, and no retry adds to it.
pub(crate) async fn is_told<D: Base>(end: &'static str)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = place.begin().await;
    let key = Key::new("ends", "1").unwrap();
    let body = async |tx: &mut Transaction<'_, D>| ends(tx, end).await;
    let call = place.idem.run_in(&mut tx, key, Policy::new(), body);
    let told = refusal(call.await);
    assert!(
        matches!(told, Error::OutcomeUnknown { .. }),
        "{end}: {told}"
    );
    assert!(!told.is_retryable());
    tx.rollback().await.unwrap_or_default();
    assert_eq!(place.effects().await, [1], "{end}");
    D::clear(&place.pool).await;

    let mut tx = place.begin().await;
    let told = refusal(without_key(&place, &mut tx, None, end).await);
    assert!(!told.is_retryable(), "{end}: {told}");
    drop(tx);
    assert_eq!(place.effects().await, [1], "{end}");
}
