//! What is needed of a database, of which there are three.

use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use idem_core::store::{MySqlStore, PostgresStore, SqliteStore, Store};
use idem_core::transaction::Database;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, MySql, Pool, Postgres, Sqlite, Transaction};

/// What a database has of a number, as one statement sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// How often its effect has happened.
    pub effects: i64,
    /// Records of it, whatever they say.
    pub records: i64,
    /// Records of it that say success.
    pub successes: i64,
}

/// A database with the table of records, and a table `effect` of numbers.
pub trait Base: Database {
    /// Keeps records in it.
    type Store: Store;

    /// Whether others can begin a transaction while one is open; where they can not, they wait
    /// there, and nobody sees them wait.
    const BEGINS_MEANWHILE: bool;

    /// A pool of a few connections, made when they are needed.
    fn open(url: &str) -> Result<Pool<Self>>;

    /// A store in it.
    fn store(pool: Pool<Self>) -> Self::Store;

    /// The same, with another limit for a call.
    fn limited(store: Self::Store, limit: Duration) -> Self::Store;

    /// Makes the tables, in an empty database.
    fn lay_out(pool: &Pool<Self>) -> impl Future<Output = Result<()>> + Send;

    /// A transaction as its users are told to begin it.
    fn begin(
        pool: &Pool<Self>,
    ) -> impl Future<Output = sqlx::Result<Transaction<'static, Self>>> + Send;

    /// The effect of a number.
    fn add(
        connection: &mut Self::Connection,
        number: i64,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// What of a number was committed.
    fn kept(pool: &Pool<Self>, number: i64) -> impl Future<Output = sqlx::Result<Kept>> + Send;

    /// The name of a connection.
    fn session(connection: &mut Self::Connection)
    -> impl Future<Output = sqlx::Result<i64>> + Send;

    /// Whether the statement of a connection waits for somebody's lock.
    fn waits(pool: &Pool<Self>, session: i64) -> impl Future<Output = sqlx::Result<bool>> + Send;
}

macro_rules! base {
    (
        $base:ty, $store:ident, $pool:ident, $options:ident: meanwhile $meanwhile:literal, begin $begin:literal,
        table $table:literal, add |$connection:ident, $number:ident| $add:expr, kept $kept:literal,
        session $session:literal, waits $waits:literal
    ) => {
        impl Base for $base {
            type Store = $store;

            const BEGINS_MEANWHILE: bool = $meanwhile;

            fn open(url: &str) -> Result<Pool<Self>> {
                let options = $options::from_str(url)?;
                Ok($pool::new().max_connections(4).connect_lazy_with(options))
            }

            fn store(pool: Pool<Self>) -> $store {
                $store::new(pool)
            }

            fn limited(store: $store, limit: Duration) -> $store {
                store.limit(limit)
            }

            async fn lay_out(pool: &Pool<Self>) -> Result<()> {
                Self::store(pool.clone()).migrate().await?;
                sqlx::raw_sql($table).execute(pool).await?;
                Ok(())
            }

            async fn begin(pool: &Pool<Self>) -> sqlx::Result<Transaction<'static, Self>> {
                pool.begin_with($begin).await
            }

            async fn add($connection: &mut Self::Connection, $number: i64) -> sqlx::Result<()> {
                $add.await.map(drop)
            }

            async fn kept(pool: &Pool<Self>, number: i64) -> sqlx::Result<Kept> {
                let text = number.to_string();
                let kept = sqlx::query_as($kept).bind(number).bind(&text).bind(&text);
                let (effects, records, successes) = kept.fetch_one(pool).await?;
                Ok(Kept {
                    effects,
                    records,
                    successes,
                })
            }

            async fn session(connection: &mut Self::Connection) -> sqlx::Result<i64> {
                sqlx::query_scalar($session).fetch_one(connection).await
            }

            async fn waits(pool: &Pool<Self>, session: i64) -> sqlx::Result<bool> {
                let waiting = sqlx::query_scalar($waits).bind(session);
                let waiting: i64 = waiting.fetch_one(pool).await?;
                Ok(waiting > 0)
            }
        }
    };
}

base!(Postgres, PostgresStore, PgPoolOptions, PgConnectOptions:
    meanwhile true, begin "BEGIN",
    table "CREATE TABLE effect (number BIGINT NOT NULL)",
    add |connection, number| sqlx::query("INSERT INTO effect VALUES ($1)").bind(number).execute(connection),
    kept "SELECT (SELECT count(*) FROM effect WHERE number = $1), \
          (SELECT count(*) FROM idempotent_record WHERE business_key = $2), \
          (SELECT count(*) FROM idempotent_record WHERE business_key = $3 AND status = 1)",
    session "SELECT pg_backend_pid()::BIGINT",
    waits "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1");

// The effect is sent as text: a connection of sqlx whose user is dropped while it prepares a statement is
// out of step. A statement under way is all that can be seen here: the list of waiting transactions is not
// kept up to date for those who look often.
base!(MySql, MySqlStore, MySqlPoolOptions, MySqlConnectOptions:
    meanwhile true, begin "BEGIN",
    table "CREATE TABLE effect (number BIGINT NOT NULL) ENGINE = InnoDB",
    add |connection, number| sqlx::raw_sql(AssertSqlSafe(format!("INSERT INTO effect VALUES ({number})")))
        .execute(connection),
    kept "SELECT (SELECT count(*) FROM effect WHERE number = ?), \
          (SELECT count(*) FROM idempotent_record WHERE business_key = ?), \
          (SELECT count(*) FROM idempotent_record WHERE business_key = ? AND status = 1)",
    session "SELECT CAST(CONNECTION_ID() AS SIGNED)",
    waits "SELECT count(*) FROM information_schema.processlist \
           WHERE id = ? AND command = 'Query' AND time_ms > 50");

base!(Sqlite, SqliteStore, SqlitePoolOptions, SqliteConnectOptions:
    meanwhile false, begin "BEGIN IMMEDIATE",
    table "CREATE TABLE effect (number BIGINT NOT NULL)",
    add |connection, number| sqlx::query("INSERT INTO effect VALUES (?1)").bind(number).execute(connection),
    kept "SELECT (SELECT count(*) FROM effect WHERE number = ?1), \
          (SELECT count(*) FROM idempotent_record WHERE business_key = ?2), \
          (SELECT count(*) FROM idempotent_record WHERE business_key = ?3 AND status = 1)",
    session "SELECT 0",
    waits "SELECT ?1");
