//! What an error of the caller's own statement asks for: a database that lets nobody in is away for
//! every statement; one that stops a statement has said something of that one.

use idem_core::sql::{Database, SqlError};
use sqlx::{Executor, MySql, Pool, Postgres};

use crate::bed::{Bed, Level};

async fn pool<DB: Bed>() -> Pool<DB> {
    DB::fresh(Level::ReadCommitted).await.pool
}

/// What the last of these statements, on one connection, fails by.
async fn failure<DB: Database>(pool: &Pool<DB>, statements: &[&'static str]) -> SqlError
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    let mut connection = pool.acquire().await.unwrap();
    let mut last = Ok(());
    for statement in statements {
        last.unwrap();
        let ran = sqlx::raw_sql(*statement).execute(&mut *connection).await;
        last = ran.map(drop);
    }
    SqlError::of::<DB>(last.unwrap_err())
}

fn is_of_the_statement(error: &SqlError) -> bool {
    matches!(error, SqlError::Database { .. })
}

fn is_away(error: &SqlError) -> bool {
    matches!(error, SqlError::Away { .. })
}

#[tokio::test]
async fn postgres_is_not_away_because_a_statement_took_too_long() {
    let slow = ["SET statement_timeout = '100ms'", "SELECT pg_sleep(60)"];
    let stopped = failure(&pool::<Postgres>().await, &slow).await;
    assert!(is_of_the_statement(&stopped), "{stopped:?}");
}

#[tokio::test]
async fn mariadb_is_not_away_because_a_statement_took_too_long() {
    let slow = [
        "SET max_statement_time = 0.1",
        "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, \
         information_schema.columns c",
    ];
    let stopped = failure(&pool::<MySql>().await, &slow).await;
    assert!(is_of_the_statement(&stopped), "{stopped:?}");
}

#[tokio::test]
async fn postgres_is_away_to_whom_it_does_not_let_in() {
    let pool = pool::<Postgres>().await;
    let nobody = (*pool.connect_options()).clone().username("nobody");
    let refused = Pool::<Postgres>::connect_with(nobody).await.unwrap_err();
    let refused = SqlError::of::<Postgres>(refused);
    assert!(is_away(&refused), "{refused:?}");
    let nowhere = (*pool.connect_options()).clone().database("nowhere");
    let refused = Pool::<Postgres>::connect_with(nowhere).await.unwrap_err();
    let refused = SqlError::of::<Postgres>(refused);
    assert!(is_away(&refused), "{refused:?}");
}

#[tokio::test]
async fn mariadb_is_away_to_whom_it_does_not_let_in() {
    let pool = pool::<MySql>().await;
    let nowhere = (*pool.connect_options()).clone().database("nowhere");
    let refused = Pool::<MySql>::connect_with(nowhere).await.unwrap_err();
    let refused = SqlError::of::<MySql>(refused);
    assert!(is_away(&refused), "{refused:?}");
}
