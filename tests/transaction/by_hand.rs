//! A record that somebody writes by hand while its body runs: the last write judges, and what does
//! not stand as it was read is not overwritten.

use idem_core::{Error, Key, Policy};
use sqlx::{Executor, Transaction};

use crate::base::{Base, Place};
use crate::shop::{Then, pay, refusal};

fn key() -> Key {
    Key::new("pay", 1_i64).unwrap()
}

const PUT_ASIDE: &str = "CREATE TABLE aside AS SELECT * FROM idempotent_record; \
     DELETE FROM idempotent_record; DELETE FROM effect";

const PUT_BACK: &str = "DELETE FROM idempotent_record; \
     INSERT INTO idempotent_record SELECT * FROM aside";

/// A place where a finished record of the key lies beside the table.
async fn place<D: Base>() -> Place<D>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = place.begin().await;
    pay(&place, &mut tx, 1, Then::End).await.unwrap();
    tx.commit().await.unwrap();
    let mut connection = place.pool.acquire().await.unwrap();
    let aside = sqlx::raw_sql(PUT_ASIDE).execute(&mut *connection);
    aside.await.unwrap();
    drop(connection);
    place
}

async fn ends_with<D: Base>(place: &Place<D>, result: &str, effects: &[i64]) {
    let mut tx = place.begin().await;
    assert_eq!(pay(place, &mut tx, 1, Then::End).await.unwrap(), result);
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, effects);
}

pub(crate) async fn a_body_that_writes_its_record_itself_is_told_and_nothing_is_kept<D: Base>()
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = place::<D>().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 6).await.unwrap();
    let body = async |tx: &mut Transaction<'_, D>| {
        D::add(tx, 2).await?;
        sqlx::raw_sql(PUT_BACK).execute(&mut **tx).await?;
        anyhow::Ok(String::new())
    };
    let refused = refusal(place.idem.run_in(&mut tx, key(), Policy::new(), body).await);
    assert!(matches!(refused, Error::LeaseLost { .. }), "{refused}");
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [6]);
    ends_with(&place, "run 2", &[1, 6]).await;
}

/// Where the lock on a key is none on its row.
pub(crate) async fn a_record_that_another_session_writes_stands_and_nothing_is_kept<D: Base>()
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = place::<D>().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 6).await.unwrap();
    let body = async |tx: &mut Transaction<'_, D>| {
        D::add(tx, 2).await?;
        let mut other = place.pool.acquire().await?;
        sqlx::raw_sql(PUT_BACK).execute(&mut *other).await?;
        anyhow::Ok(String::new())
    };
    let refused = refusal(place.idem.run_in(&mut tx, key(), Policy::new(), body).await);
    assert!(matches!(refused, Error::LeaseLost { .. }), "{refused}");
    tx.commit().await.unwrap();
    ends_with(&place, "run 1", &[6]).await;
}

/// Where the lock on a key is one on its row, or more; `impatiently` says that a session does not
/// wait for long.
pub(crate) async fn another_session_is_kept_from_the_record<D: Base>(impatiently: &'static str)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = place::<D>().await;
    let mut tx = place.begin().await;
    let body = async |tx: &mut Transaction<'_, D>| {
        D::add(tx, 2).await?;
        let mut other = place.pool.acquire().await?;
        sqlx::raw_sql(impatiently).execute(&mut *other).await?;
        let written = sqlx::raw_sql(PUT_BACK).execute(&mut *other).await;
        assert!(written.is_err(), "the row is locked");
        anyhow::Ok("run 2".to_owned())
    };
    let result = place.idem.run_in(&mut tx, key(), Policy::new(), body).await;
    assert_eq!(result.unwrap(), "run 2");
    tx.commit().await.unwrap();
    ends_with(&place, "run 2", &[2]).await;
}
