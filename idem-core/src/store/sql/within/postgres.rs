//! PostgreSQL: an advisory lock of the transaction on the key's hash, the one that the store's own
//! calls take, so that both exclude each other. It costs no write, and an attempt to get it never
//! fails the transaction.
//!
//! At READ COMMITTED each statement of a message sees what was committed before it, so the read
//! behind the lock sees what its last holder wrote. At higher levels a transaction goes on seeing
//! what it saw first; there the write finds out, and fails with 40001.

use std::mem;
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection, FromRow, PgConnection, Postgres, Row as _};

use super::super::dialect::Dialect;
use super::super::fault::{Class, Fault};
use super::super::postgres::{FIND, advisory, literal, lock_timeout, put};
use super::super::row::{Address, Columns, Row};
use super::{Call, Entered, Hold, Within, back, deepen, depth, mark};
use crate::error::StoreError;
use crate::record::StoreTime;

impl Within for Postgres {
    async fn enter(
        connection: &mut PgConnection,
        at: &Address,
        patience: Duration,
        may_go_back: bool,
    ) -> sqlx::Result<Entered> {
        let mut message = if patience.is_zero() {
            ask(at)
        } else {
            wait(at, patience)
        };
        if may_go_back {
            message = format!("{message}; {}", mark(at));
        }
        let rows = sqlx::raw_sql(AssertSqlSafe(message))
            .fetch_all(connection)
            .await?;
        let [.., lock, found] = &*rows else {
            return Err(sqlx::Error::RowNotFound);
        };
        Ok(Entered {
            found: Columns::from_row(found)?.into(),
            hold: hold(lock)?,
        })
    }

    async fn write(
        connection: &mut PgConnection,
        at: &Address,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        put(connection, at, before, Some(after), now).await
    }

    async fn back(connection: &mut PgConnection, at: &Address) -> sqlx::Result<()> {
        let back = sqlx::raw_sql(AssertSqlSafe(back(at)));
        back.execute(connection).await?;
        Ok(())
    }

    /// An error ends no transaction here.
    async fn guard(_: &mut PgConnection) {}

    /// Given up, as it was: down to the level that sqlx went back to, and that level itself until
    /// its owner rolls it back. Leaked, as its owner is to end it.
    async fn reopen(connection: &mut PgConnection, depth: usize) {
        if !connection.is_in_transaction()
            && let Ok(begun) = connection.begin_with("BEGIN READ ONLY").await
        {
            mem::forget(begun);
        }
        let whole = self::depth::<Self>(connection);
        deepen::<Self>(connection, depth).await;
        let give_up = sqlx::raw_sql(AssertSqlSafe(give_up(whole)));
        let _ = give_up.execute(connection).await;
    }

    /// Leaks the call: its drop rolls back the caller's transaction. The connection itself knows
    /// which answers are on their way.
    fn leave_opening<T>(call: Call<'_, T>) {
        mem::forget(call);
    }

    fn leave_keeping<T>(_: Call<'_, T>) {}

    fn is_locked(error: &sqlx::Error) -> bool {
        matches!(error, sqlx::Error::Database(error) if Self::class(&**error) == Class::Locked)
    }

    fn fault(error: sqlx::Error) -> StoreError {
        Fault::new(error, Self::class).before_commit().into()
    }
}

/// Lock if it is free, and read: one message.
fn ask(at: &Address) -> String {
    format!(
        "SELECT pg_try_advisory_xact_lock({}), current_setting('transaction_isolation'); {}",
        advisory(&at.hash),
        find(at)
    )
}

/// Wait for the lock, and read. The transaction's own patience is put aside, and back; if the
/// message fails in between, by the savepoint around it.
fn wait(at: &Address, patience: Duration) -> String {
    format!(
        "SELECT set_config('idem.patience', current_setting('lock_timeout'), true); \
         SET LOCAL lock_timeout = {}; \
         SELECT pg_advisory_xact_lock({}); \
         SELECT set_config('lock_timeout', current_setting('idem.patience'), true); \
         SELECT true, current_setting('transaction_isolation'); {}",
        lock_timeout(patience),
        advisory(&at.hash),
        find(at)
    )
}

/// An error, after which nothing but a rollback is taken; and to none of the savepoints above the
/// level `whole`.
fn give_up(whole: usize) -> String {
    format!(
        "RELEASE SAVEPOINT _sqlx_savepoint_{whole}; \
         RELEASE SAVEPOINT idem_transaction_was_given_up"
    )
}

fn find(at: &Address) -> String {
    FIND.replace("$1", &literal(&at.hash))
}

fn hold(lock: &PgRow) -> sqlx::Result<Hold> {
    let (is_held, isolation): (bool, &str) = (lock.try_get(0)?, lock.try_get(1)?);
    Ok(match isolation {
        _ if !is_held => Hold::Elsewhere,
        "read committed" | "read uncommitted" => Hold::Firm,
        _ => Hold::FirmAfterAWrite,
    })
}
