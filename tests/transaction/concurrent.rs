//! Two callers at once, where the database locks rows.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use idem_core::{Attempt, Error, Key, Outcome, Policy, observe};
use idem_tests::body::until;
use sqlx::{AssertSqlSafe, Executor, Transaction};

use crate::base::{Base, Place};
use crate::shop::{Then, pay, pay_or_wait, pay_or_wait_briefly, refusal};

// Q05
pub(crate) async fn a_duplicate_is_told_that_the_first_runs_and_other_keys_flow<D: Base>() {
    let place = D::place().await;
    let mut first = place.begin().await;
    pay(&place, &mut first, 1, Then::End).await.unwrap();

    let mut second = place.begin().await;
    let mut quickest = Duration::MAX;
    // Of several, as the machine may be busy.
    for _ in 0..5 {
        let asked = Instant::now();
        let refused = refusal(pay(&place, &mut second, 1, Then::End).await);
        quickest = quickest.min(asked.elapsed());
        assert!(matches!(refused, Error::InProgress { .. }), "{refused}");
        assert!(refused.is_retryable());
    }
    assert!(quickest < D::IS_TOLD_WITHIN, "{quickest:?}");
    pay(&place, &mut second, 2, Then::End).await.unwrap();
    second.commit().await.unwrap();
    assert_eq!(place.effects().await, [2]);

    first.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 2]);
}

// Q05, Q07
pub(crate) async fn a_duplicate_that_waits_gets_what_the_first_commits<D: Base>() {
    let place = D::place().await;
    let mut first = place.begin().await;
    pay_or_wait(&place, &mut first, 1, Then::End).await.unwrap();
    let second = async {
        let mut tx = place.begin().await;
        let answer = observe(pay_or_wait(&place, &mut tx, 1, Then::End)).await;
        tx.commit().await.unwrap();
        answer
    };
    let commit = async {
        somebody_waits(&place).await;
        first.commit().await.unwrap();
    };
    let ((result, outcome), ()) = tokio::join!(second, commit);
    assert_eq!(result.unwrap(), "run 1");
    let may_not_tell = D::ALWAYS_WAITS && outcome == Outcome::Replayed;
    assert!(outcome == Outcome::Waited || may_not_tell, "{outcome:?}");
    assert_eq!(place.effects().await, [1]);
}

// Q07
pub(crate) async fn a_duplicate_that_waits_runs_when_the_first_rolls_back<D: Base>() {
    let place = D::place().await;
    let mut first = place.begin().await;
    pay_or_wait(&place, &mut first, 1, Then::End).await.unwrap();
    let second = async {
        let mut tx = place.begin().await;
        let result = pay_or_wait(&place, &mut tx, 1, Then::End).await;
        tx.commit().await.unwrap();
        result
    };
    let rollback = async {
        somebody_waits(&place).await;
        first.rollback().await.unwrap();
    };
    let (result, ()) = tokio::join!(second, rollback);
    assert_eq!(result.unwrap(), "run 2");
    assert_eq!(place.effects().await, [1]);
}

// N34
pub(crate) async fn who_has_waited_counts_its_time_from_then_on<D: Base>() {
    let place = D::place().await;
    let mut first = place.begin().await;
    pay_or_wait(&place, &mut first, 1, Then::End).await.unwrap();
    let second = async { fence_in(&place, place.begin().await).await };
    let rollback = async {
        somebody_waits(&place).await;
        rolled_back_late(first).await
    };
    let (fence, rolled_back) = tokio::join!(second, rollback);
    assert!(fence >= rolled_back, "{fence} before {rolled_back}");
}

/// Which is the time of the grant, by the clock of this machine.
pub(crate) async fn fence_in<D: Base>(place: &Place<D>, mut tx: Transaction<'_, D>) -> u64 {
    let key = Key::new("pay_or_wait", 1_i64).unwrap();
    let policy = Policy::new()
        .wait_in_progress()
        .wait(Duration::from_secs(20));
    let body = async |_: &mut Transaction<'_, D>| {
        let attempt = Attempt::current().expect("this body is guarded");
        anyhow::Ok(attempt.fence().as_u64())
    };
    let fence = place.idem.run_in(&mut tx, key, policy, body).await;
    tx.commit().await.unwrap();
    fence.unwrap()
}

/// When it was rolled back, by the same clock.
pub(crate) async fn rolled_back_late<D: Base>(tx: Transaction<'_, D>) -> u64 {
    tokio::time::sleep(Duration::from_millis(300)).await;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    tx.rollback().await.unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

// Q05
pub(crate) async fn a_duplicate_waits_no_longer_than_it_says<D: Base>() {
    let place = D::place().await;
    let mut first = place.begin().await;
    pay_or_wait_briefly(&place, &mut first, 1, Then::End)
        .await
        .unwrap();

    let mut second = place.begin().await;
    let patience = D::patience(&mut second).await;
    let asked = Instant::now();
    let refused = refusal(pay_or_wait_briefly(&place, &mut second, 1, Then::End).await);
    assert!(matches!(refused, Error::InProgress { .. }), "{refused}");
    assert!(asked.elapsed() > Duration::from_millis(1500));
    assert!(asked.elapsed() < Duration::from_secs(6));
    // What it waited with is not what the caller goes on with.
    assert_eq!(D::patience(&mut second).await, patience);
    pay_or_wait_briefly(&place, &mut second, 2, Then::End)
        .await
        .unwrap();
    assert_eq!(D::patience(&mut second).await, patience);
    second.commit().await.unwrap();
    first.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 2]);
}

/// `hurry` lets no statement of the session run for so long.
pub(crate) async fn who_is_stopped_while_it_waits_is_told_that_the_first_runs<D: Base>(hurry: &str)
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let place = D::place().await;
    let mut first = place.begin().await;
    pay_or_wait(&place, &mut first, 1, Then::End).await.unwrap();

    let mut second = place.begin().await;
    let hurry = sqlx::raw_sql(AssertSqlSafe(hurry.to_owned()));
    hurry.execute(&mut *second).await.unwrap();
    let refused = refusal(pay_or_wait(&place, &mut second, 1, Then::End).await);
    assert!(matches!(refused, Error::InProgress { .. }), "{refused}");
    pay(&place, &mut second, 2, Then::End).await.unwrap();
    second.commit().await.unwrap();
    first.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 2]);
}

pub(crate) async fn duplicates_of_a_finished_request_do_not_hinder_each_other_for_long<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    pay_or_wait(&place, &mut tx, 1, Then::End).await.unwrap();
    tx.commit().await.unwrap();
    let duplicate = async || {
        let mut tx = place.begin().await;
        let result = pay_or_wait(&place, &mut tx, 1, Then::End).await;
        tx.commit().await.unwrap();
        assert_eq!(result.unwrap(), "run 1");
    };
    tokio::join!(duplicate(), duplicate(), duplicate(), duplicate());
    assert_eq!(place.bodies.count(), 1);
}

pub(crate) async fn of_a_crowd_each_key_has_one_effect<D: Base>() {
    const KEYS: i64 = 4;
    let place = D::place().await;
    let call = async |number: i64| {
        loop {
            let mut tx = place.begin().await;
            let result = pay_or_wait(&place, &mut tx, number, Then::End).await;
            match result {
                Ok(_) => return tx.commit().await.unwrap(),
                Err(error) => {
                    let error = error.downcast::<Error>().unwrap();
                    assert!(error.is_retryable(), "{error}");
                    tx.rollback().await.unwrap();
                }
            }
        }
    };
    let crowd = async |offset: i64| {
        for number in 0..KEYS {
            call((number + offset) % KEYS).await;
        }
    };
    tokio::join!(crowd(0), crowd(1), crowd(2), crowd(3), crowd(0), crowd(1));
    assert_eq!(place.effects().await, [0, 1, 2, 3]);
}

pub(crate) async fn somebody_waits<D: Base>(place: &Place<D>) {
    until("somebody waits for a lock", async || {
        D::waiting(&place.pool).await > 0
    })
    .await;
}
