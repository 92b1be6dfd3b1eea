//! PostgreSQL: an advisory lock of the transaction on the key's hash, the one that the store's own
//! calls take, so that both exclude each other. It costs no write, and an attempt to get it never
//! fails the transaction.
//!
//! Both are in one function, so that it takes one message. At READ
//! COMMITTED each statement of the function sees what was committed before it, so the read behind the
//! lock sees what its last holder wrote. At higher levels a transaction goes on seeing
//! what it saw first; there the write finds out, and fails with 40001.
//!
//! A body may end the transaction, and sqlx would not know. So the record is written where the
//! transaction began when the one did in which the key was entered, in one statement with that
//! condition: in another one, or alone, it would be kept without its effects.

mod entered;

use std::mem;
use std::time::Duration;

use sqlx::postgres::PgTransactionManager;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Postgres, Row as _, Transaction};
use sqlx_core::transaction::TransactionManager;

use super::super::dialect::Dialect;
use super::super::fault::{Class, Fault};
use super::super::postgres::{
    advisory, bind_insert, bind_update, insert, literal, lock_timeout, update,
};
use super::super::row::{Address, Row, bind_row, columns, micros};
use super::{
    Began, Call, Entered, Within, anew, back, deepen, depth, has_code, mark, release, roll_back_to,
};
use crate::error::StoreError;
use crate::record::StoreTime;

/// When the transaction began, as the function says it. The number of a transaction would be
/// surer than its time, but is only given to those that write.
macro_rules! began {
    () => {
        "timestamptz_send(transaction_timestamp())"
    };
}

const INSERT: &str = insert!(concat!(" WHERE ", began!(), " = $15"));

const UPDATE: &str = update!(concat!(" AND ", began!(), " = $16"));

const IS_THE_SAME: &str = concat!("SELECT ", began!(), " = $1");

/// Fails in a transaction, which can then keep nothing, and fails where there is none.
const GIVE_UP: &str = "RELEASE SAVEPOINT idem_transaction_was_given_up";

const NO_TRANSACTION: &str = "25P01";
const NO_SUCH_SAVEPOINT: &str = "3B001";

impl Within for Postgres {
    /// Sets the savepoint twice. At the end one is let go, in one message; who is dropped meanwhile goes
    /// back to the other, and never to an older one of the same name that an earlier call has left.
    async fn enter(
        connection: &mut PgConnection,
        at: &Address,
        patience: Duration,
        may_go_back: bool,
    ) -> sqlx::Result<Entered> {
        let twice = anew(depth::<Self>(connection));
        let message = message(at, patience, may_go_back);
        let message = sqlx::raw_sql(AssertSqlSafe(format!("{twice}; {message}")));
        let mut rows = message.fetch_all(connection).await?;
        let row = rows.pop().ok_or(sqlx::Error::RowNotFound)?;
        let said = row.try_get(0)?;
        entered::read(said).ok_or_else(|| sqlx::Error::ColumnDecode {
            index: "idempotent_enter_2".to_owned(),
            source: "not in the words of that function".into(),
        })
    }

    async fn write(
        connection: &mut PgConnection,
        at: &Address,
        began: Began,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        let mut is_written = put(connection, at, began, before, after, now).await?;
        // A purge asks for no key, and may have taken what was read, where its time is over.
        if !is_written && before.is_some_and(|before| before.expire_at <= micros(now)) {
            is_written = put(connection, at, began, None, after, now).await?;
        }
        if !is_written {
            fail_where_gone(connection, began).await?;
        }
        Ok(is_written)
    }

    async fn conclude(
        mut savepoint: Transaction<'_, Self>,
        _: usize,
        at: &Address,
        began: Began,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        let concluded = match Self::write(&mut savepoint, at, began, before, after, now).await {
            Ok(true) => PgTransactionManager::commit(&mut savepoint).await,
            Ok(false) => return Ok(false),
            Err(error) => Err(error),
        };
        match &concluded {
            Ok(()) => mem::forget(savepoint),
            Err(error) => guard_where_gone(&mut savepoint, error).await,
        }
        concluded.map(|()| true)
    }

    /// In its place is one of the same name, set in the same message, which the server runs to its
    /// end whoever waits for it: so what sqlx goes back to, at any moment, is the newest of this
    /// level, and never one of an earlier call. RELEASE alone would leave an older one to go back to.
    async fn keep(mut savepoint: Transaction<'_, Self>, depth: usize) -> sqlx::Result<()> {
        let keep = format!("{}; {}", release(depth), anew(depth));
        let kept = sqlx::raw_sql(AssertSqlSafe(keep))
            .execute(&mut *savepoint)
            .await;
        if let Err(error) = &kept {
            guard_where_gone(&mut savepoint, error).await;
        }
        kept.map(drop)
    }

    async fn level(connection: &mut PgConnection) -> usize {
        depth::<Self>(connection)
    }

    async fn back_to(connection: &mut PgConnection, depth: usize) {
        let back = sqlx::raw_sql(AssertSqlSafe(roll_back_to(depth)));
        let _ = back.execute(connection).await;
    }

    async fn back(connection: &mut PgConnection, at: &Address) -> sqlx::Result<()> {
        let back = sqlx::raw_sql(AssertSqlSafe(back(at)));
        back.execute(connection).await?;
        Ok(())
    }

    /// An error ends no transaction here.
    async fn guard(_: &mut PgConnection) -> bool {
        false
    }

    /// Goes back first: what failed has most often given up the transaction, and then nothing else is
    /// answered.
    async fn guard_failed(
        connection: &mut PgConnection,
        depth: usize,
        began: Began,
    ) -> sqlx::Result<()> {
        let back = sqlx::raw_sql(AssertSqlSafe(roll_back_to(depth)));
        let back = back.execute(&mut *connection).await;
        match (&back, began) {
            (Ok(_), Some(_)) => return fail_where_gone(connection, began).await,
            (Ok(_), None) => {}
            (Err(error), _) => guard_where_gone(connection, error).await,
        }
        back.map(drop)
    }

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

    fn is_locked(error: &sqlx::Error) -> bool {
        let error = error.as_database_error();
        error.is_some_and(|error| matches!(Self::class(error), Class::Locked | Class::Stopped))
    }

    fn is_gone(error: &sqlx::Error) -> bool {
        has_code(error, NO_TRANSACTION) || has_code(error, NO_SUCH_SAVEPOINT)
    }

    fn fault(error: sqlx::Error) -> StoreError {
        Fault::new(error, Self::class).of_the_caller().into()
    }
}

/// Lock and read in one message, with what may stand around them.
fn message(at: &Address, patience: Duration, may_go_back: bool) -> String {
    let (hash, lock) = (literal(&at.hash), advisory(&at.hash));
    let wait = if patience.is_zero() {
        String::new()
    } else {
        wait(lock, patience)
    };
    let mark = if may_go_back { mark(at) } else { String::new() };
    format!("{wait}SELECT idempotent_enter_2({hash}, {lock}); {mark}")
}

/// Waits for the lock. The transaction's own patience is put aside, and back; if the message fails
/// in between, by the savepoint around it.
fn wait(lock: i64, patience: Duration) -> String {
    format!(
        "SELECT set_config('idem.patience', current_setting('lock_timeout'), true); \
         SET LOCAL lock_timeout = {}; \
         SELECT pg_advisory_xact_lock({lock}); \
         SELECT set_config('lock_timeout', current_setting('idem.patience'), true); ",
        lock_timeout(patience),
    )
}

/// An error, after which nothing but a rollback is taken; and to none of the savepoints above the
/// level `whole`.
fn give_up(whole: usize) -> String {
    format!("RELEASE SAVEPOINT _sqlx_savepoint_{whole}; {GIVE_UP}")
}

/// Writes `after` in place of `before`, if that still stands there and the transaction is the one
/// that began then.
async fn put(
    connection: &mut PgConnection,
    at: &Address,
    began: Began,
    before: Option<&Row>,
    after: &Row,
    now: StoreTime,
) -> sqlx::Result<bool> {
    let put = match before {
        Some(before) => bind_update!(sqlx::query_scalar(UPDATE), at, before, after, now),
        None => bind_insert!(sqlx::query_scalar(INSERT), at, after, now),
    };
    let written: Option<bool> = put.bind(began).fetch_optional(connection).await?;
    Ok(written.is_some())
}

/// Where this is not the transaction that began then, an error, after which none that is open here
/// can keep anything: also where it has a savepoint that looks like the one sqlx goes back to.
async fn fail_where_gone(connection: &mut PgConnection, began: Began) -> sqlx::Result<()> {
    let is_the_same = sqlx::query_scalar(IS_THE_SAME).bind(began);
    let is_the_same: Option<bool> = is_the_same.fetch_one(&mut *connection).await?;
    if is_the_same != Some(true) {
        let around = depth::<Postgres>(connection).saturating_sub(1);
        let give_up = sqlx::raw_sql(AssertSqlSafe(give_up(around)));
        give_up.execute(connection).await?;
    }
    Ok(())
}

/// Until its caller ends it: what it writes would be committed statement by statement.
async fn guard_where_gone(connection: &mut PgConnection, error: &sqlx::Error) {
    if has_code(error, NO_TRANSACTION) {
        let guard = sqlx::raw_sql("BEGIN READ ONLY");
        let _ = guard.execute(connection).await;
    }
}
