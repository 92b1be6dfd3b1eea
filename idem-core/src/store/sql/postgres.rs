//! PostgreSQL.
//!
//! A call sends its `BEGIN`, an advisory lock on the key's hash and the lock of the row in one
//! message. The advisory lock also covers a key without a row, and keeps callers in line; keys
//! that share it only wait for each other. That it was held is not relied on: a transaction that
//! did not ask for it may have inserted the row meanwhile. So a new row is inserted only where
//! there still is none, and an old one replaced only if it still is what was read; otherwise the
//! call begins again.

mod class;
mod durability;

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::PgConnectOptions;
use sqlx::{PgConnection, Postgres};

use self::class::class;
use super::dialect::{Dialect, longest_silence};
use super::fault::{Class, Fault};
use super::held::Held;
use super::hex::hex;
use super::migrate::{self, Tables};
use super::row::{Address, Columns, Entry, Found, Listed, Row, bind_row, columns, micros, time};
use super::span::Span;
use crate::error::StoreError;
use crate::record::StoreTime;
use crate::store::Finding;

const MIGRATION: &str = include_str!("migrations/postgres_1.sql");

/// The function of transaction mode, which a copy of the tables may have come without.
const MIGRATION_OF_ENTER: &str = include_str!("migrations/postgres_2_enter.sql");

/// Not `now()`, which stands still from `BEGIN` on.
macro_rules! clock {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}

const FIND: &str = concat!(
    "SELECT clock.now, ",
    columns!(),
    " FROM (SELECT ",
    clock!(),
    " AS now) AS clock LEFT JOIN idempotent_record ON key_hash = $1"
);

/// A row where there is none, `where` what else has to be so.
macro_rules! insert {
    ($where:expr) => {
        concat!(
            "INSERT INTO idempotent_record (",
            columns!(),
            ", key_hash, business_type, business_key, create_time, update_time)",
            " SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14",
            $where,
            " ON CONFLICT DO NOTHING RETURNING true"
        )
    };
}
pub(super) use insert;

/// The values of [`insert!`].
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

/// A row in place of the one that was read, `and` what else has to be so.
macro_rules! update {
    ($and:expr) => {
        concat!(
            "UPDATE idempotent_record SET request_id = $1, status = $2, fence = $3, \
             attempt = $4, fingerprint = $5, checkpoint = $6, lease_until = $7, \
             response_data = $8, expire_at = $9, record = $10, update_time = $11 \
             WHERE key_hash = $12 AND record = $13 AND expire_at = $14 \
             AND response_data IS NOT DISTINCT FROM $15",
            $and,
            " RETURNING true"
        )
    };
}
pub(super) use update;

/// The values of [`update!`].
macro_rules! bind_update {
    ($query:expr, $at:expr, $before:expr, $row:expr, $now:expr) => {
        bind_row!($query, $row)
            .bind(micros($now))
            .bind(&$at.hash[..])
            .bind(&*$before.record)
            .bind($before.expire_at)
            .bind($before.response_data.as_deref())
    };
}
pub(super) use bind_update;

const INSERT: &str = insert!("");

const UPDATE: &str = update!("");

const DELETE: &str = "DELETE FROM idempotent_record \
     WHERE key_hash = $1 AND record = $2 AND expire_at = $3 \
     AND response_data IS NOT DISTINCT FROM $4 RETURNING true";

/// From the first row of a span on, or from behind a row.
macro_rules! page {
    ($from:literal) => {
        concat!(
            "SELECT business_type, business_key, ",
            clock!(),
            ", ",
            columns!(),
            " FROM idempotent_record WHERE (business_type, business_key) ",
            $from,
            " ($1, $2) AND (business_type, business_key) < ($3, $4)",
            " ORDER BY business_type, business_key LIMIT $5"
        )
    };
}

/// Rows that a call or another purge is at are left for the next time. An array is made once; `IN` a
/// query may run that again for each row, and each time find others.
const PURGE: &str = concat!(
    "DELETE FROM idempotent_record",
    " WHERE key_hash = ANY (ARRAY (SELECT key_hash FROM idempotent_record",
    " WHERE expire_at <= $1 ORDER BY expire_at LIMIT $2 FOR UPDATE SKIP LOCKED))"
);

/// The lock of a migration: `idem` in ASCII.
const MIGRATING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; \
     SELECT pg_advisory_xact_lock(1768187245)";

const ROLLBACK: &str = "ROLLBACK";

impl Dialect for Postgres {
    type Held = Held<Self>;

    const WRITERS: usize = tokio::sync::Semaphore::MAX_PERMITS;

    async fn lock(
        connection: Held<Self>,
        at: &Address,
        patience: Duration,
    ) -> sqlx::Result<(Self::Held, Found)> {
        let begin = begin(&at.hash, patience);
        let mut held = connection.begin(begin, ROLLBACK).await?;
        let columns = sqlx::query_as::<_, Columns>(FIND)
            .bind(&at.hash[..])
            .fetch_one(held.connection()?)
            .await?;
        Ok((held, columns.into()))
    }

    async fn put(
        held: &mut Self::Held,
        at: &Address,
        before: Option<&Row>,
        after: Option<&Row>,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        put(held.connection()?, at, before, after, now).await
    }

    async fn commit(held: Self::Held) -> sqlx::Result<()> {
        held.end("COMMIT").await
    }

    async fn release(held: Self::Held) -> sqlx::Result<()> {
        held.end(ROLLBACK).await
    }

    async fn read(connection: &mut PgConnection, at: &Address) -> sqlx::Result<Found> {
        let find = sqlx::query_as::<_, Columns>(FIND).bind(&at.hash[..]);
        Ok(find.fetch_one(connection).await?.into())
    }

    async fn page(connection: &mut PgConnection, span: &Span) -> sqlx::Result<Vec<Entry>> {
        let page = if span.is_first {
            page!(">=")
        } else {
            page!(">")
        };
        let rows = sqlx::query_as::<_, Listed>(page)
            .bind(&*span.begin.0)
            .bind(&*span.begin.1)
            .bind(&*span.end.0)
            .bind(&*span.end.1)
            .bind(span.rows)
            .fetch_all(connection)
            .await?;
        Ok(rows.into_iter().map(Entry::from).collect())
    }

    async fn now(connection: &mut PgConnection) -> sqlx::Result<StoreTime> {
        now(connection).await
    }

    async fn migrate(connection: Held<Self>) -> Result<(), StoreError> {
        let fault = |error| Fault::new(error, Self::class);
        let held = connection.begin(MIGRATING.to_owned(), ROLLBACK).await;
        let mut held = held.map_err(fault)?;
        let tables = tables(held.connection().map_err(fault)?).await;
        let is_needed = migrate::is_needed(tables.map_err(fault)?)?;
        if is_needed {
            run(&mut held, MIGRATION).await.map_err(fault)?;
        }
        if !has_enter(held.connection().map_err(fault)?)
            .await
            .map_err(fault)?
        {
            match run(&mut held, MIGRATION_OF_ENTER).await {
                // With tables that an older version has made, only transaction mode needs it.
                Err(error) if !is_needed && is_not_allowed(&error) => {
                    tracing::warn!(%error, "transaction mode can not be used, as its function is missing");
                    held.end(ROLLBACK).await.map_err(fault)?;
                    return Ok(());
                }
                made => made.map_err(fault)?,
            }
        }
        held.end("COMMIT").await.map_err(fault)?;
        Ok(())
    }

    async fn purge(mut connection: Held<Self>, batch: u32) -> sqlx::Result<u64> {
        let now = now(connection.connection()?).await?;
        let purge = sqlx::query(PURGE).bind(micros(now)).bind(i64::from(batch));
        let purged = purge.execute(connection.connection()?).await;
        Ok(connection.after(purged)?.rows_affected())
    }

    async fn check(connection: &mut PgConnection) -> sqlx::Result<Vec<Finding>> {
        let (synchronous, fsync, is_copied_late, is_unlogged): (String, String, bool, bool) =
            sqlx::query_as(
                "SELECT current_setting('synchronous_commit'), current_setting('fsync'), \
                 EXISTS (SELECT 1 FROM pg_stat_replication) \
                 AND (current_setting('synchronous_standby_names') = '' \
                 OR current_setting('synchronous_commit') IN ('local', 'off')), \
                 coalesce((SELECT relpersistence <> 'p' FROM pg_class \
                 WHERE oid = to_regclass('idempotent_record')), false)",
            )
            .fetch_one(&mut *connection)
            .await?;
        let mut findings = durability::judge(&synchronous, &fsync, is_copied_late, is_unlogged);
        match migrate::doubt(tables(connection).await?) {
            None if !may_enter(connection).await? => findings.push(no_enter()),
            doubt => findings.extend(doubt),
        }
        Ok(findings)
    }

    fn place(options: &PgConnectOptions) -> String {
        match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        }
    }

    fn class(error: &dyn DatabaseError) -> Class {
        error.code().map_or(Class::Protocol, |code| class(&code))
    }
}

async fn now(connection: &mut PgConnection) -> sqlx::Result<StoreTime> {
    let now = sqlx::query_scalar(concat!("SELECT ", clock!()));
    Ok(time(now.fetch_one(connection).await?))
}

/// Writes `after` in place of `before`, if that still stands there.
async fn put(
    connection: &mut PgConnection,
    at: &Address,
    before: Option<&Row>,
    after: Option<&Row>,
    now: StoreTime,
) -> sqlx::Result<bool> {
    let query = match (before, after) {
        (None, None) => return Ok(true),
        (Some(before), None) => sqlx::query_scalar(DELETE)
            .bind(&at.hash[..])
            .bind(&*before.record)
            .bind(before.expire_at)
            .bind(before.response_data.as_deref()),
        (Some(before), Some(row)) => {
            bind_update!(sqlx::query_scalar(UPDATE), at, before, row, now)
        }
        (None, Some(row)) => bind_insert!(sqlx::query_scalar(INSERT), at, row, now),
    };
    let written: Option<bool> = query.fetch_optional(connection).await?;
    Ok(written.is_some())
}

/// One message that begins a transaction and waits for the key. `SET LOCAL` ends with it.
fn begin(hash: &[u8; 32], patience: Duration) -> String {
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; \
         SET LOCAL lock_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = {}; \
         SELECT pg_advisory_xact_lock({}); \
         SELECT 1 FROM idempotent_record WHERE key_hash = {} FOR UPDATE",
        lock_timeout(patience),
        lock_timeout(longest_silence(patience)),
        advisory(hash),
        literal(hash)
    )
}

/// A patience as `lock_timeout` takes it: in milliseconds, 0 would be without end.
pub(super) fn lock_timeout(patience: Duration) -> i32 {
    i32::try_from(patience.as_millis()).map_or(i32::MAX, |millis| millis.max(1))
}

/// The number of the advisory lock of a key.
pub(super) fn advisory(hash: &[u8; 32]) -> i64 {
    hash.first_chunk().copied().map_or(0, i64::from_be_bytes)
}

/// A key as it is written in a statement.
pub(super) fn literal(hash: &[u8; 32]) -> String {
    format!("decode('{}', 'hex')", hex(hash))
}

async fn tables(connection: &mut PgConnection) -> sqlx::Result<Tables> {
    let (has_version, has_records) = sqlx::query_as::<_, (bool, bool)>(
        "SELECT to_regclass('idempotent_record_version') IS NOT NULL, \
         to_regclass('idempotent_record') IS NOT NULL",
    )
    .fetch_one(&mut *connection)
    .await?;
    let version = "SELECT coalesce(max(version), 0) FROM idempotent_record_version";
    let version = if has_version {
        let version = sqlx::query_scalar(version);
        Some(version.fetch_one(connection).await?)
    } else {
        None
    };
    Ok(Tables {
        version,
        has_records,
    })
}

async fn has_enter(connection: &mut PgConnection) -> sqlx::Result<bool> {
    let has = "SELECT to_regprocedure('idempotent_enter_2(bytea, bigint)') IS NOT NULL";
    sqlx::query_scalar(has).fetch_one(connection).await
}

async fn run(held: &mut Held<Postgres>, script: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(script).execute(held.connection()?).await?;
    Ok(())
}

fn is_not_allowed(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.as_deref() == Some("42501")
}

async fn may_enter(connection: &mut PgConnection) -> sqlx::Result<bool> {
    let may = "SELECT coalesce(has_function_privilege( \
         to_regprocedure('idempotent_enter_2(bytea, bigint)'), 'EXECUTE'), false)";
    sqlx::query_scalar(may).fetch_one(connection).await
}

fn no_enter() -> Finding {
    Finding {
        code: "no_function",
        detail: "the function idempotent_enter_2 is not there, or this user may not run it, so every call in a transaction is refused; call migrate(), which also creates it alone, and grant EXECUTE on it".into(),
    }
}
