//! SQLite.
//!
//! There is one writer at a time in a file, so a call takes the whole file with
//! `BEGIN IMMEDIATE`. Calls of one store queue in this process, in their order; between processes
//! they queue by the pool's `busy_timeout`, which knows no order.
//!
//! SQLite has no clock of its own: its `now` is the machine's in whole milliseconds, too coarse
//! for records that expire to the microsecond. The machine's is read here instead, after the lock:
//! all processes that can open the file share it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteTransactionManager};
use sqlx::{SqlSafeStr, Sqlite, SqliteConnection, Transaction};
use sqlx_core::transaction::TransactionManager;

use super::dialect::Dialect;
use super::fault::{Class, Fault};
use super::held;
use super::migrate::{self, Tables};
use super::row::{Address, Columns, Entry, Found, Listed, Row, bind_row, columns, micros};
use super::span::Span;
use super::within::{clear, renew_if_gone};
use crate::error::StoreError;
use crate::record::StoreTime;
use crate::store::Finding;

const MIGRATION: &str = include_str!("migrations/sqlite_1.sql");

/// Always one row.
macro_rules! select_key {
    () => {
        concat!(
            "SELECT clock.now, ",
            columns!(),
            " FROM (SELECT ?1 AS now) AS clock LEFT JOIN idempotent_record ON key_hash = ?2"
        )
    };
}
pub(super) use select_key;

pub(super) const INSERT: &str = concat!(
    "INSERT INTO idempotent_record (",
    columns!(),
    ", key_hash, business_type, business_key, create_time, update_time)",
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14)"
);

/// Binds a new row.
macro_rules! bind_insert {
    ($query:expr, $at:expr, $row:expr, $now:expr) => {
        bind_row!($query, $row)
            .bind(&$at.hash[..])
            .bind(&*$at.business_type)
            .bind(&*$at.business_key)
            .bind(micros($now))
    };
}
pub(super) use bind_insert;

const UPDATE: &str = "UPDATE idempotent_record SET request_id = ?1, status = ?2, fence = ?3, \
     attempt = ?4, fingerprint = ?5, checkpoint = ?6, lease_until = ?7, response_data = ?8, \
     expire_at = ?9, record = ?10, update_time = ?12 WHERE key_hash = ?11";

const DELETE: &str = "DELETE FROM idempotent_record WHERE key_hash = ?1";

/// From the first row of a span on, or from behind a row.
macro_rules! page {
    ($from:literal) => {
        concat!(
            "SELECT business_type, business_key, ?1, ",
            columns!(),
            " FROM idempotent_record WHERE (business_type, business_key) ",
            $from,
            " (?2, ?3) AND (business_type, business_key) < (?4, ?5)",
            " ORDER BY business_type, business_key LIMIT ?6"
        )
    };
}

const PURGE: &str = "DELETE FROM idempotent_record WHERE key_hash IN \
     (SELECT key_hash FROM idempotent_record WHERE expire_at <= ?1 ORDER BY expire_at LIMIT ?2)";

type Held = Transaction<'static, Sqlite>;

impl Dialect for Sqlite {
    type Held = Held;

    const WRITERS: usize = 1;

    /// In memory, in a file that has no name, or in one that a connection keeps for itself. Of what it
    /// was told beside the name, sqlx gives away only what it shows.
    fn is_of_its_pool(options: &SqliteConnectOptions) -> bool {
        const SHOWN: [&str; 4] = ["in_memory: true", "mode=memory", "memdb", "exclusive"];
        let (name, shown) = (Self::place(options), format!("{options:?}"));
        let (is_nameless, shown) = (
            name.is_empty() || name.ends_with(":memory:"),
            shown.to_lowercase(),
        );
        is_nameless || SHOWN.iter().any(|mark| shown.contains(mark))
    }

    /// How long others are waited for is the pool's `busy_timeout`.
    async fn lock(
        connection: held::Held<Self>,
        at: &Address,
        _: Duration,
    ) -> sqlx::Result<(Held, Found)> {
        let mut held = begin(connection).await?;
        let found = find(&mut held, at).await;
        let found = countable(&mut held, found).await?;
        Ok((held, found))
    }

    async fn put(
        held: &mut Held,
        at: &Address,
        before: Option<&Row>,
        after: Option<&Row>,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        let put = put(held, at, before, after, now).await;
        // Nobody else writes to the file meanwhile.
        countable(held, put).await.map(|()| true)
    }

    async fn commit(held: Held) -> sqlx::Result<()> {
        commit(held).await
    }

    async fn release(held: Held) -> sqlx::Result<()> {
        held.rollback().await
    }

    async fn read(connection: &mut SqliteConnection, at: &Address) -> sqlx::Result<Found> {
        find(connection, at).await
    }

    async fn page(connection: &mut SqliteConnection, span: &Span) -> sqlx::Result<Vec<Entry>> {
        let page = if span.is_first {
            page!(">=")
        } else {
            page!(">")
        };
        let rows = sqlx::query_as::<_, Listed>(page)
            .bind(micros(clock()))
            .bind(&*span.begin.0)
            .bind(&*span.begin.1)
            .bind(&*span.end.0)
            .bind(&*span.end.1)
            .bind(span.rows)
            .fetch_all(&mut *connection)
            .await?;
        Ok(rows.into_iter().map(Entry::from).collect())
    }

    fn clock() -> Option<StoreTime> {
        Some(clock())
    }

    async fn now(_: &mut SqliteConnection) -> sqlx::Result<StoreTime> {
        Ok(clock())
    }

    async fn migrate(connection: held::Held<Self>) -> Result<(), StoreError> {
        let fault = |error| Fault::new(error, Self::class);
        let mut held = begin(connection).await.map_err(fault)?;
        let tables = tables(&mut held).await;
        let tables = countable(&mut held, tables).await.map_err(fault)?;
        if migrate::is_needed(tables)? {
            let migration = sqlx::raw_sql(MIGRATION);
            let migrated = migration.execute(&mut *held).await;
            countable(&mut held, migrated).await.map_err(fault)?;
        }
        commit(held).await.map_err(fault)?;
        Ok(())
    }

    async fn purge(connection: held::Held<Self>, batch: u32) -> sqlx::Result<u64> {
        let mut held = begin(connection).await?;
        let purge = sqlx::query(PURGE).bind(micros(clock())).bind(batch);
        let purged = purge.execute(&mut *held).await;
        let purged = countable(&mut held, purged).await?;
        commit(held).await?;
        Ok(purged.rows_affected())
    }

    async fn check(connection: &mut SqliteConnection) -> sqlx::Result<Vec<Finding>> {
        let file: Option<String> =
            sqlx::query_scalar("SELECT file FROM pragma_database_list WHERE name = 'main'")
                .fetch_one(&mut *connection)
                .await?;
        let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous")
            .fetch_one(&mut *connection)
            .await?;
        let journal: String = sqlx::query_scalar("PRAGMA journal_mode")
            .fetch_one(&mut *connection)
            .await?;
        let mut findings = judge(file.as_deref(), synchronous, &journal);
        findings.extend(migrate::doubt(tables(connection).await?));
        Ok(findings)
    }

    fn place(options: &SqliteConnectOptions) -> String {
        options.get_filename().display().to_string()
    }

    /// The low byte of the code tells; the others only say more.
    fn class(error: &dyn DatabaseError) -> Class {
        let code = error.code().and_then(|code| code.parse::<u32>().ok());
        match code.unwrap_or_default() & 0xff {
            // SQLITE_BUSY, SQLITE_LOCKED: whoever has the file may end soon. SQLITE_PROTOCOL: as busy,
            // where WAL is being opened or recovered.
            5 | 6 | 15 => Class::Conflict,
            // NOMEM, READONLY, IOERR, FULL
            7 | 8 | 10 | 13 => Class::Refused,
            // PERM, CANTOPEN
            3 | 14 => Class::NotLetIn,
            // ERROR: our statements are sound, so their tables are not there. AUTH
            1 | 23 => Class::Misconfigured,
            _ => Class::Protocol,
        }
    }
}

/// With the file from the start: a transaction that has only read until then can find it taken.
async fn begin(connection: held::Held<Sqlite>) -> sqlx::Result<Held> {
    let mut connection = connection.into_inner()?;
    clear(&mut connection).await?;
    Transaction::begin(connection, Some("BEGIN IMMEDIATE".into_sql_str())).await
}

/// Behind an error there is a transaction for sqlx to roll back, in any case.
async fn countable<T>(held: &mut Held, done: sqlx::Result<T>) -> sqlx::Result<T> {
    if done.is_err() {
        renew_if_gone(held).await;
    }
    done
}

/// Not the transaction's own commit, which rolls back at once where it could not commit.
async fn commit(mut held: Held) -> sqlx::Result<()> {
    let committed = SqliteTransactionManager::commit(&mut held).await;
    countable(&mut held, committed).await
}

/// Reads a key.
pub(super) async fn find(connection: &mut SqliteConnection, at: &Address) -> sqlx::Result<Found> {
    let columns = sqlx::query_as::<_, Columns>(select_key!())
        .bind(micros(clock()))
        .bind(&at.hash[..])
        .fetch_one(connection)
        .await?;
    Ok(columns.into())
}

/// Writes `after` in place of `before`, while nobody else can write.
pub(super) async fn put(
    connection: &mut SqliteConnection,
    at: &Address,
    before: Option<&Row>,
    after: Option<&Row>,
    now: StoreTime,
) -> sqlx::Result<()> {
    let query = match (before, after) {
        (None, None) => return Ok(()),
        (Some(_), None) => sqlx::query(DELETE).bind(&at.hash[..]),
        (Some(_), Some(row)) => bind_row!(sqlx::query(UPDATE), row)
            .bind(&at.hash[..])
            .bind(micros(now)),
        (None, Some(row)) => bind_insert!(sqlx::query(INSERT), at, row, now),
    };
    query.execute(connection).await?;
    Ok(())
}

/// A clock before 1970 stands at the epoch.
pub(super) fn clock() -> StoreTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    StoreTime::default().after(since.unwrap_or_default())
}

async fn tables(connection: &mut SqliteConnection) -> sqlx::Result<Tables> {
    let has = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?1)";
    let has_version: bool = sqlx::query_scalar(has)
        .bind("idempotent_record_version")
        .fetch_one(&mut *connection)
        .await?;
    let has_records = sqlx::query_scalar(has)
        .bind("idempotent_record")
        .fetch_one(&mut *connection)
        .await?;
    let version = "SELECT coalesce(max(version), 0) FROM idempotent_record_version";
    let version = if has_version {
        Some(
            sqlx::query_scalar(version)
                .fetch_one(&mut *connection)
                .await?,
        )
    } else {
        None
    };
    Ok(Tables {
        version,
        has_records,
    })
}

fn judge(file: Option<&str>, synchronous: i64, journal: &str) -> Vec<Finding> {
    const FULL: i64 = 2;
    let mut findings = Vec::new();
    if file.is_none_or(str::is_empty) {
        findings.push(Finding {
            code: "no_persistence",
            detail: "the database is in memory: a restart loses all records, and what they guarded runs again; open a file".into(),
        });
        return findings;
    }
    if matches!(journal, "off" | "memory") {
        findings.push(Finding {
            code: "no_journal",
            detail: format!(
                "journal_mode is {journal}: a crash in a write can destroy the file; use wal or delete"
            ),
        });
    }
    if synchronous < FULL {
        findings.push(Finding {
            code: "not_durable",
            detail: format!(
                "synchronous is {synchronous}: a power failure can lose the last records, and what they guarded runs again; set it to full"
            ),
        });
    }
    findings
}
