//! A body that ends its caller's transaction: what it did may be kept, and nobody can say so. Its
//! record is kept in no other transaction, so nobody is given its result.

use idem_core::{Error, Key, OnError, Policy, Results, idempotent};
use sqlx::{Executor, Transaction};

use crate::base::{Base, Place};
use crate::isolation::begin_at;
use crate::shop::{self, Final, pay, refusal};

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

fn key() -> Key {
    Key::new("ends", "1").unwrap()
}

async fn call<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    end: &'static str,
) -> anyhow::Result<String>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let body = async |tx: &mut Transaction<'_, D>| ends(tx, end).await;
    place.idem.run_in(tx, key(), Policy::new(), body).await
}

/// What is told of a body that says `end`, and of its effect `kept`, in a transaction that is then
/// committed, or rolled back.
async fn is_told_then<D: Base>(
    place: &Place<D>,
    mut tx: Transaction<'static, D>,
    (end, kept): (&'static str, &[i64]),
    commits: bool,
) where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let told = refusal(call(place, &mut tx, end).await);
    assert!(
        matches!(told, Error::OutcomeUnknown { .. }),
        "{end}: {told}"
    );
    assert!(!told.is_retryable());
    let _ = if commits {
        tx.commit().await
    } else {
        tx.rollback().await
    };
    assert_eq!(place.effects().await, kept, "{end}, commits: {commits}");
    D::clear(&place.pool).await;
}

/// How a body ends that has ended its transaction.
#[derive(Debug, Clone, Copy)]
enum Then {
    Succeed,
    Fail,
    /// With an error that is to be replayed.
    FailForGood,
}

async fn ends_then<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    end: &'static str,
    then: Then,
) -> Result<String, Final>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let body = async |tx: &mut Transaction<'_, D>| {
        let ended = ends(tx, end).await;
        let ended = ended.map_err(|error| Final::Other(error.to_string()))?;
        match then {
            Then::Succeed => Ok(ended),
            Then::Fail | Then::FailForGood => Err(Final::Declined(1)),
        }
    };
    let mut results = Results::stored();
    if let Then::FailForGood = then {
        results = results.replay_errors().on_error(OnError::Replay);
    }
    let call = place
        .idem
        .run_in_with(tx, key(), Policy::new(), results, None, body);
    call.await
}

/// However a body ends that says `end`, its caller is told, and can write nothing that would be kept
/// without what it wrote before; `kept` is what the body itself kept.
pub(crate) async fn nothing_goes_on_behind<D: Base>(end: &'static str, kept: &[i64])
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    for then in [Then::Succeed, Then::Fail, Then::FailForGood] {
        let context = format!("{end}, {then:?}");
        let mut tx = place.begin().await;
        let told = ends_then(&place, &mut tx, end, then).await;
        assert_eq!(
            told,
            Err(Final::Other("outcome_unknown".to_owned())),
            "{context}"
        );
        D::add(&mut tx, 8).await.expect_err(&context);
        let _ = tx.commit().await;
        assert_eq!(place.effects().await, kept, "{context}");
        D::clear(&place.pool).await;
    }
    // The connections are as good as any.
    for number in 1..=8 {
        let mut tx = place.begin().await;
        pay(&place, &mut tx, number, shop::Then::End).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// Nobody is given the result of the body that ended so.
async fn is_given_to_nobody<D: Base>(place: &Place<D>, end: &'static str)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let mut tx = place.begin().await;
    let again = async |_: &mut Transaction<'_, D>| anyhow::Ok("again".to_owned());
    let duplicate = place.idem.run_in(&mut tx, key(), Policy::new(), again);
    if let Ok(given) = duplicate.await {
        assert_eq!(given, "again", "{end}");
    }
    tx.rollback().await.unwrap();
}

/// What is told of a body that says `end`, and of its effect `kept`; no retry adds to it.
pub(crate) async fn is_told<D: Base>(end: &'static str, kept: &[i64])
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    for commits in [false, true] {
        let place = D::place().await;
        let tx = place.begin().await;
        is_told_then(&place, tx, (end, kept), commits).await;
        is_given_to_nobody(&place, end).await;
    }
}

/// The same of a body without a key.
pub(crate) async fn is_told_without_a_key<D: Base>(end: &'static str, kept: &[i64])
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut tx = place.begin().await;
    let told = refusal(without_key(&place, &mut tx, None, end).await);
    assert!(!told.is_retryable(), "{end}: {told}");
    drop(tx);
    assert_eq!(place.effects().await, kept, "{end}");
}

/// The same at another level of isolation, over a record that was there.
pub(crate) async fn is_told_at<D: Base>(level: &str, end: &'static str, kept: &[i64])
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    for was_there in [false, true] {
        let place = D::place().await;
        if was_there {
            let failed = async || anyhow::Result::<String>::Err(anyhow::anyhow!("declined"));
            let failed = place.leases.run(key(), Policy::new(), failed).await;
            failed.unwrap_err();
        }
        let tx = begin_at(&place, level).await;
        is_told_then(&place, tx, (end, kept), true).await;
        is_given_to_nobody(&place, end).await;
    }
}
