//! SQLite in a file, waiting for the disk at each commit.

use anyhow::Result;
use idem_core::Idempotency;
use idem_core::store::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqliteConnection, SqlitePool, Transaction};

use super::{Business, Rows, account_and_amount};
use crate::beside::Place;
use crate::order::Order;
use crate::rounds::Load;

const LOAD: Load = Load {
    tasks: 1,
    calls: 500,
};

/// The least share of the bare transaction's rate that is good enough.
const TARGET: f64 = 0.90;

const TABLES: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
WITH RECURSIVE ids (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM ids WHERE id < 999)
INSERT INTO account SELECT id, 0 FROM ids;
CREATE TABLE ledger (order_no TEXT PRIMARY KEY, account INTEGER NOT NULL, amount INTEGER NOT NULL);
CREATE TABLE request (key TEXT PRIMARY KEY, result BLOB) WITHOUT ROWID";

impl Business for Sqlite {
    async fn begin(pool: &SqlitePool) -> sqlx::Result<Transaction<'static, Self>> {
        pool.begin_with("BEGIN IMMEDIATE").await
    }

    async fn pay(connection: &mut SqliteConnection, order: &Order) -> sqlx::Result<()> {
        let (account, amount) = account_and_amount(order).map_err(sqlx::Error::decode)?;
        sqlx::query("UPDATE account SET balance = balance - $1 WHERE id = $2")
            .bind(amount)
            .bind(account)
            .execute(&mut *connection)
            .await?;
        sqlx::query("INSERT INTO ledger VALUES ($1, $2, $3)")
            .bind(&order.number)
            .bind(account)
            .bind(amount)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn ask_by_hand(connection: &mut SqliteConnection, key: &str) -> Result<Option<Vec<u8>>> {
        let insert = "INSERT OR IGNORE INTO request (key) VALUES ($1)";
        let insert = sqlx::query(insert).bind(key);
        if insert.execute(&mut *connection).await?.rows_affected() == 1 {
            return Ok(None);
        }
        let find = "SELECT result FROM request WHERE key = $1";
        let find = sqlx::query_scalar(find).bind(key);
        Ok(find.fetch_one(connection).await?)
    }

    async fn write_by_hand(
        connection: &mut SqliteConnection,
        key: &str,
        result: &[u8],
    ) -> Result<()> {
        let update = "UPDATE request SET result = $1 WHERE key = $2";
        let update = sqlx::query(update).bind(result).bind(key);
        update.execute(connection).await?;
        Ok(())
    }
}

pub(crate) async fn compare(rounds: usize) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("idem-sqlite-").tempdir()?;
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("shop.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let pool = SqlitePoolOptions::new()
        .max_connections(2)
        .test_before_acquire(false);
    let pool = pool.connect_with(options).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    let store = SqliteStore::new(pool.clone());
    store.migrate().await?;
    let rows = Rows::of(pool.clone(), Idempotency::builder(store).build()?);
    let version: String = sqlx::query_scalar("SELECT sqlite_version()")
        .fetch_one(&pool)
        .await?;
    println!(
        "### SQLite {version}, WAL, synchronous=FULL: {} calls by one client\n",
        LOAD.calls
    );
    rows.measure(LOAD, rounds, TARGET, &pool).await?;
    pool.close().await;
    Ok(())
}

impl Place for SqlitePool {
    /// Empty tables, and nothing in the log.
    async fn fresh(&self) -> Result<()> {
        for statement in [
            "DELETE FROM ledger",
            "DELETE FROM request",
            "DELETE FROM idempotent_record",
            "PRAGMA wal_checkpoint(TRUNCATE)",
        ] {
            sqlx::raw_sql(statement).execute(self).await?;
        }
        Ok(())
    }

    /// There is none but this process.
    fn server_time(&self) -> Result<f64> {
        Ok(0.0)
    }
}
