//! The databases that the shop can be in, and what differs between them.
//!
//! Every function about orders, stock and payments is written once, for any [`Dialect`].

mod sql;

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use idem_core::Idempotency;
use idem_core::store::{MySqlStore, PostgresStore, SqliteStore};
use sqlx::error::DatabaseError;
use sqlx::mysql::MySqlQueryResult;
use sqlx::postgres::PgQueryResult;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteQueryResult};
use sqlx::{IntoArguments, MySql, MySqlPool, PgPool, Pool, Postgres, Sqlite, SqlitePool};
use tokio::time::sleep;

use crate::apart::apart;
use crate::config::NAMESPACE;
use crate::orders;

pub use self::sql::{Holds, Runs, Sql, Text, get, sql};

/// How long a writer waits for those before it: in an `SQLite` file there is one at a time, and who
/// is next is a matter of luck.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two attempts to open a file that others are just opening.
const PAUSE: Duration = Duration::from_millis(20);

/// A database for the shop.
pub trait Dialect:
    sqlx::Database<Arguments: IntoArguments<Self>, Connection: Runs<Self>>
    + idem_core::sql::Database
    + idem_core::transaction::Database
    + Holds<i64>
    + Holds<Option<i64>>
    + Holds<String>
{
    /// Its tables, made where they are missing.
    const SCHEMA: &'static str;

    /// Whether its placeholders are `$1`, `$2` instead of `?`.
    const NUMBERS_PLACEHOLDERS: bool = false;

    /// The records that are kept beside the tables, by transactions.
    fn records(pool: &Pool<Self>) -> impl Future<Output = anyhow::Result<Idempotency>> + Send;

    /// Deletes those of them that have expired, at most so many, and says how many.
    fn purge(pool: &Pool<Self>, batch: u32) -> impl Future<Output = anyhow::Result<u64>> + Send;

    /// How many rows a statement has changed.
    fn changed(result: &Self::QueryResult) -> u64;

    /// Begins a transaction that may write.
    ///
    /// # Cancel safety
    /// Dropped, it leaves no transaction behind.
    #[must_use]
    fn begin(
        pool: &Pool<Self>,
    ) -> impl Future<Output = sqlx::Result<sqlx::Transaction<'static, Self>>> + Send {
        let pool = pool.clone();
        apart(async move { pool.begin().await })
    }
}

impl Dialect for Sqlite {
    const SCHEMA: &'static str = include_str!("sqlite.sql");

    async fn records(pool: &SqlitePool) -> anyhow::Result<Idempotency> {
        let store = SqliteStore::new(pool.clone());
        store.migrate().await?;
        Ok(Idempotency::builder(store).namespace(NAMESPACE).build()?)
    }

    async fn purge(pool: &SqlitePool, batch: u32) -> anyhow::Result<u64> {
        Ok(SqliteStore::new(pool.clone()).purge(batch).await?)
    }

    fn changed(result: &SqliteQueryResult) -> u64 {
        result.rows_affected()
    }

    /// Takes the right to write at once: one that had read before could be refused it.
    fn begin(
        pool: &SqlitePool,
    ) -> impl Future<Output = sqlx::Result<sqlx::Transaction<'static, Self>>> + Send {
        pool.begin_with("BEGIN IMMEDIATE")
    }
}

impl Dialect for Postgres {
    const SCHEMA: &'static str = include_str!("postgres.sql");
    const NUMBERS_PLACEHOLDERS: bool = true;

    async fn records(pool: &PgPool) -> anyhow::Result<Idempotency> {
        let store = PostgresStore::new(pool.clone());
        store.migrate().await?;
        Ok(Idempotency::builder(store).namespace(NAMESPACE).build()?)
    }

    async fn purge(pool: &PgPool, batch: u32) -> anyhow::Result<u64> {
        Ok(PostgresStore::new(pool.clone()).purge(batch).await?)
    }

    fn changed(result: &PgQueryResult) -> u64 {
        result.rows_affected()
    }
}

impl Dialect for MySql {
    const SCHEMA: &'static str = include_str!("mysql.sql");

    async fn records(pool: &MySqlPool) -> anyhow::Result<Idempotency> {
        let store = MySqlStore::new(pool.clone());
        store.migrate().await?;
        Ok(Idempotency::builder(store).namespace(NAMESPACE).build()?)
    }

    async fn purge(pool: &MySqlPool, batch: u32) -> anyhow::Result<u64> {
        Ok(MySqlStore::new(pool.clone()).purge(batch).await?)
    }

    fn changed(result: &MySqlQueryResult) -> u64 {
        result.rows_affected()
    }
}

/// The shop's tables in an `SQLite` file, which is made where it is missing.
///
/// # Errors
/// What the database says: no right to write there, or a file that is no database.
pub async fn sqlite(file: &Path) -> anyhow::Result<SqlitePool> {
    prepared(open(file).await?).await
}

/// The shop's tables in a `PostgreSQL` database.
///
/// # Errors
/// What the database says.
pub async fn postgres(url: &str) -> anyhow::Result<PgPool> {
    prepared(PgPool::connect(url).await?).await
}

/// The shop's tables in a `MySQL` or `MariaDB` database.
///
/// # Errors
/// What the database says.
pub async fn mysql(url: &str) -> anyhow::Result<MySqlPool> {
    prepared(MySqlPool::connect(url).await?).await
}

/// The payment provider's ledger, which is no business of the shop's database.
///
/// # Errors
/// What the database says.
pub async fn ledger(file: &Path) -> sqlx::Result<SqlitePool> {
    let pool = open(file).await?;
    let mut connection = pool.acquire().await?;
    connection.script(include_str!("provider.sql")).await?;
    Ok(pool)
}

async fn prepared<DB: Dialect>(pool: Pool<DB>) -> anyhow::Result<Pool<DB>> {
    pool.acquire().await?.script(DB::SCHEMA).await?;
    orders::transition().migrate(&pool).await?;
    Ok(pool)
}

/// `SQLite` switches a new file to WAL like one who has read and wants to write: whoever writes
/// meanwhile is not waited for, whatever the `busy_timeout`. So servers that start at once ask again.
async fn open(file: &Path) -> sqlx::Result<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(PATIENCE);
    let end = Instant::now() + PATIENCE;
    loop {
        let pool = SqlitePoolOptions::new().max_connections(4);
        match pool.connect_with(options.clone()).await {
            Err(error) if is_busy(&error) && Instant::now() < end => sleep(PAUSE).await,
            opened => return opened,
        }
    }
}

/// `SQLITE_BUSY`; what is above the low byte only says more.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.and_then(|code| code.parse::<u32>().ok())
        .is_some_and(|code| code & 0xff == 5)
}
