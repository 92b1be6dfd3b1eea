//! MySQL 8 and MariaDB 10.6 or later.
//!
//! A key without a row can not be locked without locking the gap around it, over which two new
//! keys can deadlock. So a call first inserts an empty row, or, where there is one, locks that by
//! the same statement. If the key stays without a record the transaction is rolled back, so
//! nobody ever sees an empty row.
//!
//! The time is `UTC_TIMESTAMP(6)`, in a statement that is sent after the lock was granted.
//! `SYSDATE(6)` reads a local clock that repeats an hour each autumn.

mod class;
mod statements;

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlRow};
use sqlx::{AssertSqlSafe, FromRow, MySql, MySqlConnection, QueryBuilder};

use self::class::class;
use self::statements::{
    COMMIT, DELETE, FIND, LATER_TYPES, LOOK, MIGRATING, NOW, OVER, PAGE_AFTER, PAGE_FROM, ROLLBACK,
    begin,
};
pub(super) use self::statements::{UPDATE, find, insert_or_lock, lock_wait_timeout};
use super::dialect::Dialect;
use super::fault::{Class, Fault};
use super::held::Held;
use super::migrate::{self, Tables};
use super::row::{Address, Columns, Entry, Found, Listed, Row, bind_row, micros, time};
use super::span::Span;
use crate::error::{StoreError, StoreErrorKind};
use crate::record::StoreTime;
use crate::store::Finding;

const MIGRATION: &str = include_str!("migrations/mysql_1.sql");

/// More characters than a key has.
const LONGER_THAN_A_KEY: usize = 51;

impl Dialect for MySql {
    type Held = Held<Self>;

    const WRITERS: usize = tokio::sync::Semaphore::MAX_PERMITS;

    async fn lock(
        connection: Held<Self>,
        at: &Address,
        patience: Duration,
    ) -> sqlx::Result<(Self::Held, Found)> {
        let begin = format!("{}; {}", begin(patience), insert_or_lock(at));
        let mut held = connection.begin(begin, ROLLBACK).await?;
        let columns = sqlx::query_as::<_, Columns>(FIND)
            .bind(&at.hash[..])
            .fetch_one(held.connection()?)
            .await?;
        Ok((held, filled(columns)))
    }

    async fn put(
        held: &mut Self::Held,
        at: &Address,
        _: Option<&Row>,
        after: Option<&Row>,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        put(held.connection()?, at, after, now).await?;
        // The row is locked.
        Ok(true)
    }

    async fn commit(held: Self::Held) -> sqlx::Result<()> {
        held.end(COMMIT).await
    }

    async fn release(held: Self::Held) -> sqlx::Result<()> {
        held.end(ROLLBACK).await
    }

    /// Claims are refused by what is read here, so it has to be committed, whatever the session's
    /// isolation is. What is set for one transaction is set for the next one that begins, whosever.
    async fn read(connection: &mut MySqlConnection, at: &Address) -> sqlx::Result<Found> {
        let found = found(connection, format!("{LOOK}; {}; COMMIT", find(at))).await;
        if let Err(sqlx::Error::Database(_)) = found {
            sqlx::raw_sql("ROLLBACK").execute(connection).await?;
        }
        found
    }

    async fn page(connection: &mut MySqlConnection, span: &Span) -> sqlx::Result<Vec<Entry>> {
        let is_one_type = span.begin.0 == span.end.0;
        let end = if is_one_type {
            span.end.1.clone()
        } else {
            char::MAX.to_string().repeat(LONGER_THAN_A_KEY)
        };
        let page = if span.is_first { PAGE_FROM } else { PAGE_AFTER };
        let mut rows = sqlx::query_as::<_, Listed>(page)
            .bind(&*span.begin.0)
            .bind(&*span.begin.1)
            .bind(&*end)
            .bind(span.rows)
            .fetch_all(&mut *connection)
            .await?;
        let left = span.rows - i64::try_from(rows.len()).unwrap_or(i64::MAX);
        if left > 0 && !is_one_type {
            let later = sqlx::query_as::<_, Listed>(LATER_TYPES)
                .bind(&*span.begin.0)
                .bind(&*span.end.0)
                .bind(left);
            rows.extend(later.fetch_all(&mut *connection).await?);
        }
        end_reading(connection).await?;
        Ok(rows.into_iter().map(Entry::from).collect())
    }

    async fn now(connection: &mut MySqlConnection) -> sqlx::Result<StoreTime> {
        now(connection).await
    }

    async fn migrate(connection: Held<Self>) -> Result<(), StoreError> {
        let fault = |error| Fault::new(error, Self::class);
        // A lock of this kind belongs to the connection.
        let mut held = connection;
        let is_locked: Option<i64> = sqlx::query_scalar(MIGRATING)
            .fetch_one(held.connection().map_err(fault)?)
            .await
            .map_err(fault)?;
        if is_locked != Some(1) {
            return Err(StoreError::new(
                StoreErrorKind::Conflict,
                "sql: another migration is under way",
            ));
        }
        if migrate::is_needed(
            tables(held.connection().map_err(fault)?)
                .await
                .map_err(fault)?,
        )? {
            let migration = sqlx::raw_sql(MIGRATION);
            let migrated = migration.execute(held.connection().map_err(fault)?).await;
            migrated.map_err(fault)?;
        }
        let unlock = "COMMIT; DO RELEASE_LOCK(MD5(CONCAT(DATABASE(), '.idempotent_record')))";
        held.end(unlock).await.map_err(fault)?;
        Ok(())
    }

    async fn purge(mut connection: Held<Self>, batch: u32) -> sqlx::Result<u64> {
        let now = now(connection.connection()?).await?;
        let mut held = connection.begin(begin(Duration::ZERO), ROLLBACK).await?;
        let hashes: Vec<Vec<u8>> = sqlx::query_scalar(OVER)
            .bind(micros(now))
            .bind(batch)
            .fetch_all(held.connection()?)
            .await?;
        if !hashes.is_empty() {
            let mut delete = QueryBuilder::new("DELETE FROM idempotent_record WHERE key_hash IN (");
            let mut list = delete.separated(", ");
            for hash in &hashes {
                list.push_bind(&**hash);
            }
            delete.push(")");
            // Else each size would be a statement that stays in the session.
            let delete = delete.build().persistent(false);
            delete.execute(held.connection()?).await?;
        }
        held.end(COMMIT).await?;
        Ok(hashes.len() as u64)
    }

    async fn check(connection: &mut MySqlConnection) -> sqlx::Result<Vec<Finding>> {
        let (flush, has_binlog, sync_binlog, engine): (i64, i64, i64, Option<String>) =
            sqlx::query_as(
                "SELECT CAST(@@innodb_flush_log_at_trx_commit AS SIGNED), \
                 CAST(@@log_bin AS SIGNED), CAST(@@sync_binlog AS SIGNED), \
                 (SELECT engine FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name = 'idempotent_record')",
            )
            .fetch_one(&mut *connection)
            .await?;
        // One server has the one name, another the other.
        let isolation: Vec<(String, String)> = sqlx::query_as(
            "SHOW SESSION VARIABLES WHERE variable_name IN ('transaction_isolation', 'tx_isolation')",
        )
        .fetch_all(&mut *connection)
        .await?;
        let mut findings = judge(flush, has_binlog != 0, sync_binlog, engine.as_deref());
        findings.extend(dirty(&isolation));
        findings.extend(migrate::doubt(tables(&mut *connection).await?));
        end_reading(connection).await?;
        Ok(findings)
    }

    fn place(options: &MySqlConnectOptions) -> String {
        match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        }
    }

    fn class(error: &dyn DatabaseError) -> Class {
        let error = error.try_downcast_ref::<MySqlDatabaseError>();
        error.map_or(Class::Protocol, |error| class(error.number()))
    }
}

async fn now(connection: &mut MySqlConnection) -> sqlx::Result<StoreTime> {
    let now = sqlx::query_scalar(NOW);
    Ok(time(now.fetch_one(connection).await?))
}

/// Without `autocommit` a statement that reads begins a transaction, which would show the session
/// what stood then for as long as it lives.
async fn end_reading(connection: &mut MySqlConnection) -> sqlx::Result<()> {
    sqlx::raw_sql("COMMIT").execute(connection).await?;
    Ok(())
}

/// Runs a message that reads one row.
pub(super) async fn found(
    connection: &mut MySqlConnection,
    message: String,
) -> sqlx::Result<Found> {
    let message = sqlx::raw_sql(AssertSqlSafe(message));
    let rows: Vec<MySqlRow> = message.fetch_all(connection).await?;
    let row = rows.last().ok_or(sqlx::Error::RowNotFound)?;
    Ok(filled(Columns::from_row(row)?))
}

/// A row that was only just inserted holds nothing: one's own, or at READ UNCOMMITTED one of a call
/// under way.
fn filled(columns: Columns) -> Found {
    let mut found = Found::from(columns);
    found.row = found.row.filter(|row| !row.record.is_empty());
    found
}

/// Writes `after` into the row, which is there and locked.
async fn put(
    connection: &mut MySqlConnection,
    at: &Address,
    after: Option<&Row>,
    now: StoreTime,
) -> sqlx::Result<()> {
    let query = match after {
        None => sqlx::query(DELETE),
        Some(row) => bind_row!(sqlx::query(UPDATE), row).bind(micros(now)),
    };
    query.bind(&at.hash[..]).execute(connection).await?;
    Ok(())
}

async fn tables(connection: &mut MySqlConnection) -> sqlx::Result<Tables> {
    let has = "SELECT count(IF(table_name = 'idempotent_record_version', 1, NULL)), \
               count(IF(table_name = 'idempotent_record', 1, NULL)) \
               FROM information_schema.tables WHERE table_schema = DATABASE()";
    let (has_version, has_records): (i64, i64) =
        sqlx::query_as(has).fetch_one(&mut *connection).await?;
    let version = "SELECT coalesce(max(version), 0) FROM idempotent_record_version";
    let version = if has_version > 0 {
        let version = sqlx::query_scalar(version);
        Some(version.fetch_one(connection).await?)
    } else {
        None
    };
    Ok(Tables {
        version,
        has_records: has_records > 0,
    })
}

fn judge(flush: i64, has_binlog: bool, sync_binlog: i64, engine: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(engine) = engine.filter(|engine| !engine.eq_ignore_ascii_case("innodb")) {
        findings.push(Finding {
            code: "no_transactions",
            detail: format!(
                "the table's engine is {engine}: nothing is locked, so one request can run twice; ALTER TABLE idempotent_record ENGINE = InnoDB"
            ),
        });
    }
    if flush != 1 {
        findings.push(Finding {
            code: "not_durable",
            detail: format!(
                "innodb_flush_log_at_trx_commit is {flush}: a crash loses the last records, and what they guarded runs again; set it to 1"
            ),
        });
    }
    if has_binlog && sync_binlog != 1 {
        findings.push(Finding {
            code: "binlog_not_durable",
            detail: format!(
                "sync_binlog is {sync_binlog}: a power failure rolls back the last records that are not in the binary log; set it to 1"
            ),
        });
    }
    findings
}

/// Calls that decide something set an isolation of their own; those that only look do not.
fn dirty(isolation: &[(String, String)]) -> Option<Finding> {
    let is_dirty = isolation
        .iter()
        .any(|(_, level)| level == "READ-UNCOMMITTED");
    is_dirty.then(|| Finding {
        code: "read_uncommitted",
        detail: "sessions begin at READ UNCOMMITTED: what is shown of a record may never be committed; use READ COMMITTED".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_up_is_judged_by_what_it_can_lose() {
        let codes = |findings: Vec<Finding>| -> Vec<&str> {
            findings.into_iter().map(|finding| finding.code).collect()
        };
        assert!(codes(judge(1, false, 0, Some("InnoDB"))).is_empty());
        assert!(codes(judge(1, true, 1, None)).is_empty());
        assert_eq!(
            codes(judge(2, true, 0, Some("Aria"))),
            ["no_transactions", "not_durable", "binlog_not_durable"]
        );
    }
}
