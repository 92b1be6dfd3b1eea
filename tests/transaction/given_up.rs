//! A transaction that the database has given up within a body, which keeps that to itself and calls
//! another: sqlx, which can not open a savepoint for that one, rolls back what is around it.

use idem_core::{Key, Policy, idempotent};
use sqlx::{Acquire, Executor, Transaction};

use crate::base::{Base, Place};
use crate::shop::{Then, pay};

/// The error that ends a transaction, or all of it that the server knows.
async fn lose<D: Base>(connection: &mut D::Connection)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let _ = sqlx::raw_sql("SELECT 1 FROM no_such_table")
        .execute(&mut *connection)
        .await;
    if D::NAME == "MySQL" {
        // As after a deadlock: the server is in no transaction.
        let _ = sqlx::raw_sql("ROLLBACK").execute(connection).await;
    }
}

/// A body that loses its transaction, calls another, and goes on as if nothing had been.
async fn go_on<D: Base>(place: &Place<D>, tx: &mut Transaction<'_, D>) -> anyhow::Result<()>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    D::add(tx, 1).await?;
    lose::<D>(tx).await;
    pay(place, tx, 2, Then::End).await.unwrap_err();
    let _ = D::add(tx, 3).await;
    Ok(())
}

#[idempotent(prefix = "no_key", key = number, tx = tx, engine = place.idem, on_missing_key = "run")]
async fn without_key<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: Option<i64>,
) -> anyhow::Result<()>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    go_on(place, tx).await
}

fn key(id: &str) -> Key {
    Key::new("outer", id).unwrap()
}

/// Nothing of a caller who goes on is kept, and its connection is as good as any.
async fn keeps_nothing<D: Base>(place: Place<D>, tx: Transaction<'static, D>) {
    keeps(&place, tx, &[]).await;
}

async fn keeps<D: Base>(place: &Place<D>, mut tx: Transaction<'static, D>, kept: &[i64]) {
    let _ = D::add(&mut tx, 8).await;
    let _ = D::add(&mut tx, 9).await;
    let _ = tx.commit().await;
    assert_eq!(place.effects().await, kept);
    for number in 21..=28 {
        let mut tx = place.begin().await;
        pay(place, &mut tx, number, Then::End).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(place.effects().await.len(), kept.len() + 8);
}

pub(crate) async fn a_body_that_goes_on_keeps_nothing<D: Base>()
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 6).await.unwrap();
    let body = async |tx: &mut Transaction<'_, D>| go_on(&place, tx).await;
    let result = place
        .idem
        .run_in(&mut tx, key("1"), Policy::new(), body)
        .await;
    result.unwrap_err();
    keeps_nothing(place, tx).await;
}

pub(crate) async fn a_body_without_a_key_that_goes_on_keeps_nothing<D: Base>()
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 6).await.unwrap();
    without_key(&place, &mut tx, None).await.unwrap_err();
    keeps_nothing(place, tx).await;
}

pub(crate) async fn a_body_deeper_down_that_goes_on_keeps_nothing<D: Base>()
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 6).await.unwrap();
    let middle = async |tx: &mut Transaction<'_, D>| go_on(&place, tx).await;
    let outer = async |tx: &mut Transaction<'_, D>| {
        D::add(tx, 4).await?;
        let call = place.idem.run_in(tx, key("2"), Policy::new(), middle);
        call.await.unwrap_err();
        anyhow::Ok(())
    };
    let call = place.idem.run_in(&mut tx, key("1"), Policy::new(), outer);
    call.await.unwrap_err();
    // What the caller did itself is lost where the server has lost it.
    let kept: &[i64] = if D::NAME == "MySQL" { &[] } else { &[6, 8, 9] };
    keeps(&place, tx, kept).await;
}

pub(crate) async fn a_savepoint_of_the_caller_stays_one<D: Base>()
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 6).await.unwrap();
    let mut savepoint = tx.begin().await.unwrap();
    go_on(&place, &mut savepoint).await.unwrap();
    savepoint.commit().await.unwrap_err();
    keeps_nothing(place, tx).await;
}
