//! What the database says when two transactions are in each other's way: which error it is, and
//! what can be written after it.

use std::time::Duration;

use idem_core::{Attempt, Error, Key, Policy, StoreErrorKind};
use idem_tests::body::until;
use sqlx::{AssertSqlSafe, Executor, Transaction};
use tokio::sync::Notify;

use crate::base::{Base, Place};
use crate::isolation::code;
use crate::settle_in::effect;

fn key(number: i64) -> Key {
    Key::new("locks", number).unwrap()
}

/// Locks row `number` of a table that both of a deadlock want.
async fn take<D: Base>(tx: &mut Transaction<'_, D>, number: i64) -> sqlx::Result<()>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let take = format!("UPDATE wanted SET taken = taken + 1 WHERE number = {number}");
    let take = sqlx::raw_sql(AssertSqlSafe(take)).execute(&mut **tx);
    take.await.map(drop)
}

async fn place<D: Base>() -> Place<D>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = place.begin().await;
    for statement in [
        "CREATE TABLE wanted (number BIGINT PRIMARY KEY, taken BIGINT NOT NULL)",
        "INSERT INTO wanted VALUES (1, 0), (2, 0)",
    ] {
        sqlx::raw_sql(statement).execute(&mut *tx).await.unwrap();
    }
    tx.commit().await.unwrap();
    place
}

/// A body that is the victim of a deadlock, and hands the error on or does not tell; then a caller
/// that goes on as if nothing had been. What is in the table afterwards is what `kept` says.
pub(crate) async fn after_a_deadlock_nothing_is_half_kept<D: Base>(tells: bool, kept: &[i64])
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = place::<D>().await;
    let mut other = place.begin().await;
    take(&mut other, 2).await.unwrap();
    // Of two, the one that has written less is the victim.
    for number in 1000..1050 {
        D::add(&mut other, number).await.unwrap();
    }
    let mut tx = place.begin().await;
    D::add(&mut tx, 6).await.unwrap();
    let has_first = Notify::new();
    let body = async |tx: &mut Transaction<'_, D>| {
        D::add(tx, 1).await?;
        take(tx, 1).await?;
        has_first.notify_one();
        let taken = take(tx, 2).await;
        assert!(taken.is_err(), "the other one was the victim");
        if tells {
            taken?;
        }
        anyhow::Ok(1)
    };
    let call = place.idem.run_in(&mut tx, key(1), Policy::new(), body);
    let close = async {
        has_first.notified().await;
        until("the first waits", async || {
            D::waiting(&place.pool).await > 0
        })
        .await;
        take(&mut other, 1).await
    };
    let (result, closed) = tokio::join!(call, close);
    closed.unwrap();
    result.unwrap_err();
    let _ = D::add(&mut tx, 8).await;
    let _ = D::add(&mut tx, 9).await;
    let _ = tx.commit().await;
    other.rollback().await.unwrap();
    assert_eq!(place.effects().await, kept);
    // Nothing says that it was done, and the connection is as good as any.
    let mut tx = place.begin().await;
    let body = async |tx: &mut Transaction<'_, D>| {
        D::add(tx, 7).await?;
        anyhow::Ok(2)
    };
    let again = place.idem.run_in(&mut tx, key(1), Policy::new(), body);
    assert_eq!(again.await.unwrap(), 2);
    tx.commit().await.unwrap();
    assert!(place.effects().await.contains(&7));
}

pub(crate) async fn of_two_that_want_two_keys_crosswise_one_is_told<D: Base>(sqlstate: &str) {
    let place = D::place().await;
    let policy = Policy::new()
        .wait_in_progress()
        .wait(Duration::from_secs(20));
    let run = async |tx: &mut Transaction<'_, D>, number| {
        let body = async |tx: &mut Transaction<'_, D>| {
            D::add(tx, number).await.unwrap();
            Ok::<_, Error>(())
        };
        place.idem.run_in(tx, key(number), policy, body).await
    };
    let (mut first, mut second) = (place.begin().await, place.begin().await);
    run(&mut first, 1).await.unwrap();
    run(&mut second, 2).await.unwrap();
    let cross = async |mut tx: Transaction<'static, D>, number| {
        let result = run(&mut tx, number).await;
        match &result {
            Ok(()) => tx.commit().await.unwrap(),
            Err(_) => tx.rollback().await.unwrap(),
        }
        result
    };
    let (one, other) = tokio::join!(cross(first, 2), cross(second, 1));
    let told = match (one, other) {
        (Ok(()), Err(told)) | (Err(told), Ok(())) => told,
        other => panic!("{other:?}"),
    };
    assert!(told.is_retryable(), "{told}");
    assert_eq!(code(&told), sqlstate);
    assert!(
        told.to_string().ends_with(": deadlock of transactions"),
        "{told}"
    );
    assert!(matches!(&told, Error::Store { source } if source.kind() == StoreErrorKind::Conflict));
    assert_eq!(place.effects().await, [1, 2]);
}

/// An attempt in lease mode whose record somebody has locked by `lock`, and whose transaction waits
/// for that as `patience` says. It is told so, and settles in a second transaction.
pub(crate) async fn who_waits_in_vain_to_settle_is_told<D: Base>(
    lock: &'static str,
    patience: &'static str,
) -> Error
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut told = None;
    let run = place.leases.run(key(1), Policy::new(), async || {
        let mut other = place.begin().await;
        sqlx::raw_sql(lock).execute(&mut *other).await?;
        let mut tx = place.pool.begin().await?;
        sqlx::raw_sql(patience).execute(&mut *tx).await?;
        let attempt = Attempt::current().expect("this body is guarded");
        told = attempt.settle_in(&mut tx, &1).await.err();
        tx.rollback().await?;
        other.rollback().await?;
        effect(&place).await
    });
    assert_eq!(run.await.unwrap(), 1);
    assert_eq!(place.effects().await, [1]);
    let again = place.leases.run(key(1), Policy::new(), || effect(&place));
    assert_eq!(again.await.unwrap(), 1);
    assert_eq!(place.bodies.count(), 1);
    let told = told.expect("the record was locked");
    assert!(told.is_retryable(), "{told}");
    assert!(matches!(&told, Error::Store { source } if source.kind() == StoreErrorKind::Conflict));
    told
}
