//! A row of one's own that is inserted within a transaction, by a call that is dropped.

use idem_core::sql::{InsertError, insert_or_get};

use super::*;
use crate::half::drop_at;

const ONCE: &str = "CREATE TABLE once (number BIGINT PRIMARY KEY); INSERT INTO once VALUES (0)";

/// Inserts the row of this number, and says whether the call had ended after so many polls.
async fn insert(tx: &mut Transaction<'_, Postgres>, number: i64, polls: usize) -> bool {
    let insert = sqlx::query("INSERT INTO once VALUES ($1)").bind(number);
    let select = sqlx::query_as::<_, (i64,)>("SELECT number FROM once WHERE number = $1");
    let select = select.bind(number);
    drop_at(polls, insert_or_get(&mut **tx, "once_pkey", insert, select)).await
}

/// Drops the call at each of its polls, after one that has left a savepoint of the same name.
async fn is_dropped_anywhere(number: i64) {
    let place = Postgres::place().await;
    sqlx::raw_sql(ONCE).execute(&place.pool).await.unwrap();
    for polls in 0.. {
        let mut tx = place.begin().await;
        assert!(insert(&mut tx, 0, usize::MAX).await);
        Postgres::add(&mut tx, 6).await.unwrap();
        let has_ended = insert(&mut tx, number, polls).await;
        let committed = match Postgres::add(&mut tx, 8).await {
            Ok(()) => tx.commit().await,
            // It may have to be rolled back, but is told so.
            Err(error) => tx.rollback().await.and(Err(error)),
        };
        let expected: &[i64] = if committed.is_ok() { &[6, 8] } else { &[] };
        let found = place.effects().await;
        assert_eq!(found, expected, "after {polls} polls: {committed:?}");
        Postgres::clear(&place.pool).await;
        let clear = "DELETE FROM once WHERE number > 0";
        let cleared = sqlx::raw_sql(clear).execute(&place.pool).await.unwrap();
        if has_ended {
            assert!(committed.is_ok());
            assert_eq!(cleared.rows_affected(), u64::from(number > 0));
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_that_is_dropped_anywhere_leaves_what_was_done_before() {
    is_dropped_anywhere(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_insert_that_is_dropped_anywhere_leaves_what_was_done_before() {
    is_dropped_anywhere(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_insert_in_a_transaction_that_is_not_of_sqlx_is_told_so() {
    let place = Postgres::place().await;
    let mut connection = place.pool.acquire().await.unwrap();
    for sql in [ONCE, "BEGIN"] {
        sqlx::raw_sql(sql).execute(&mut *connection).await.unwrap();
    }
    let insert = sqlx::query("INSERT INTO once VALUES (0)");
    let select = sqlx::query_as::<_, (i64,)>("SELECT number FROM once WHERE number = 0");
    let error = insert_or_get(&mut *connection, "once_pkey", insert, select).await;
    let error = error.unwrap_err();
    assert!(matches!(error, InsertError::NotBegun { .. }), "{error:?}");
    assert!(!error.is_retryable());
    let rollback = sqlx::raw_sql("ROLLBACK");
    rollback.execute(&mut *connection).await.unwrap();
}
