//! At other levels than the usual one.

use idem_core::Error;
use sqlx::error::DatabaseError;
use sqlx::{AssertSqlSafe, Connection, Executor, Transaction};

use crate::base::{Base, Place};
use crate::concurrent::somebody_waits;
use crate::shop::{Final, Then, decline, pay, pay_or_wait, refusal};

/// A transaction at a level that it says with its first statement, where that is allowed.
pub(crate) async fn begin_at<D: Base>(place: &Place<D>, level: &str) -> Transaction<'static, D>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    if D::NAME != "PostgreSQL" {
        let mut connection = place.pool.acquire().await.unwrap();
        let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        let set = sqlx::raw_sql(AssertSqlSafe(set));
        set.execute(&mut *connection).await.unwrap();
        return Transaction::begin(connection, None).await.unwrap();
    }
    let begin = format!("BEGIN ISOLATION LEVEL {level}");
    place.pool.begin_with(AssertSqlSafe(begin)).await.unwrap()
}

pub(crate) async fn a_body_runs_once<D: Base>(level: &str)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = begin_at(&place, level).await;
    pay(&place, &mut tx, 1, Then::End).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = begin_at(&place, level).await;
    assert!(pay(&place, &mut tx, 1, Then::Fail).await.is_err());
    tx.commit().await.unwrap();
    for _ in 0..2 {
        let mut tx = begin_at(&place, level).await;
        let result = pay(&place, &mut tx, 1, Then::End).await;
        assert_eq!(result.unwrap(), "run 3");
        tx.commit().await.unwrap();
    }
    for _ in 0..2 {
        let mut tx = begin_at(&place, level).await;
        let declined = decline(&place, &mut tx, 2).await;
        assert_eq!(declined, Err(Final::Declined(4)));
        tx.commit().await.unwrap();
    }
    assert_eq!(place.effects().await, [1]);
}

/// Two transactions at this level; the second has begun, and looked, before the first commits.
async fn one_after_the_other<D: Base>(level: &str) -> (Place<D>, Transaction<'static, D>)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut second = begin_at(&place, level).await;
    let look = sqlx::raw_sql("SELECT count(*) FROM idempotent_record_version");
    look.execute(&mut *second).await.unwrap();
    let mut first = begin_at(&place, level).await;
    pay(&place, &mut first, 1, Then::End).await.unwrap();
    first.commit().await.unwrap();
    (place, second)
}

pub(crate) async fn who_can_not_see_the_first_is_told<D: Base>(level: &str, sqlstate: &str)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let (place, mut second) = one_after_the_other::<D>(level).await;
    let refused = refusal(pay(&place, &mut second, 1, Then::End).await);
    assert!(matches!(refused, Error::Store { .. }), "{refused}");
    assert!(refused.is_retryable());
    assert_eq!(code(&refused), sqlstate);
    let told = refused.to_string();
    assert!(told.ends_with(": transactions in conflict"), "{told}");
    assert_eq!(place.bodies.count(), 1, "the body did not run");
    // The transaction is usable, if of little use.
    second.ping().await.unwrap();
    D::add(&mut second, 7).await.unwrap();
    second.rollback().await.unwrap();
    let mut again = begin_at(&place, level).await;
    assert_eq!(
        pay(&place, &mut again, 1, Then::End).await.unwrap(),
        "run 1"
    );
}

pub(crate) async fn who_began_before_sees_the_first<D: Base>(level: &str)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let (place, mut second) = one_after_the_other::<D>(level).await;
    let replayed = pay(&place, &mut second, 1, Then::End).await;
    assert_eq!(replayed.unwrap(), "run 1");
    second.commit().await.unwrap();
    assert_eq!(place.effects().await, [1]);
}

/// What a duplicate is told while the first is open, and afterwards.
pub(crate) async fn who_comes_while_the_first_is_open_is_told<D: Base>(level: &str)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut first = begin_at(&place, level).await;
    pay(&place, &mut first, 1, Then::End).await.unwrap();
    let mut second = begin_at(&place, level).await;
    let refused = refusal(pay(&place, &mut second, 1, Then::End).await);
    assert!(matches!(refused, Error::InProgress { .. }), "{refused}");
    second.rollback().await.unwrap();
    first.commit().await.unwrap();
    let mut third = begin_at(&place, level).await;
    let replayed = pay(&place, &mut third, 1, Then::End).await;
    assert_eq!(replayed.unwrap(), "run 1");
    third.commit().await.unwrap();
    assert_eq!(place.effects().await, [1]);
}

/// What a duplicate gets that waits for the first until that commits, or rolls back.
pub(crate) async fn who_waits_for_the_first_gets<D: Base>(
    level: &str,
    commits: bool,
) -> anyhow::Result<String>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut first = begin_at(&place, level).await;
    pay_or_wait(&place, &mut first, 1, Then::End).await.unwrap();
    let second = async {
        let mut tx = begin_at(&place, level).await;
        let result = pay_or_wait(&place, &mut tx, 1, Then::End).await;
        match result {
            Ok(_) => tx.commit().await.unwrap(),
            Err(_) => tx.rollback().await.unwrap(),
        }
        result
    };
    let end = async {
        somebody_waits(&place).await;
        if commits {
            first.commit().await.unwrap();
        } else {
            first.rollback().await.unwrap();
        }
    };
    let (result, ()) = tokio::join!(second, end);
    assert_eq!(place.bodies.count(), if commits { 1 } else { 2 });
    assert_eq!(place.effects().await, [1]);
    // What the first committed is there for whoever begins afterwards.
    let mut again = begin_at(&place, level).await;
    pay_or_wait(&place, &mut again, 1, Then::End).await.unwrap();
    again.commit().await.unwrap();
    assert_eq!(place.effects().await, [1]);
    result
}

/// The code of the database's error behind an error of the guard.
pub(crate) fn code(error: &Error) -> String {
    let code = behind(error).code();
    code.expect("the database said why").into_owned()
}

/// The database's error behind an error of the guard.
pub(crate) fn behind(error: &Error) -> &dyn DatabaseError {
    let Error::Store { source } = error else {
        panic!("not of the database: {error}");
    };
    let source = std::error::Error::source(source).expect("the cause is kept");
    let error = source.downcast_ref::<sqlx::Error>().expect("of sqlx");
    error.as_database_error().expect("of the database")
}
