//! SQLite: whoever writes has the whole file. So the first statement is a write that changes
//! nothing; a transaction that has only read until then may find that it is too late for that, and
//! is told so (`SQLITE_BUSY`). Begun by `begin_with("BEGIN IMMEDIATE")` it has the file already.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use sqlx::sqlite::SqliteTransactionManager;
use sqlx::{AssertSqlSafe, Connection, Sqlite, SqliteConnection, Transaction};
use sqlx_core::transaction::TransactionManager;

use super::super::dialect::Dialect;
use super::super::fault::{Class, Fault};
use super::super::row::{Address, Columns, Found, Row, bind_row, columns, micros};
use super::super::sqlite::{INSERT, bind_insert, clock, find, put, select_key};
use super::{
    Began, Call, Entered, Hold, Within, anew, deepen, depth, has_code, roll_back_to, write_and_keep,
};
use crate::error::StoreError;
use crate::record::StoreTime;
use crate::transaction::Whole;

/// One hop to the connection's thread. No key has the empty hash.
const ENTER: &str = concat!(
    "UPDATE idempotent_record SET fence = fence WHERE key_hash = x''; ",
    "SAVEPOINT idem_entered; ",
    select_key!()
);

/// To the mark, which stays.
const BACK: &str = "ROLLBACK TO SAVEPOINT idem_entered";

/// Lets the mark go. Where there is none, the transaction in which it was set is no more.
const UNMARK: &str = "RELEASE SAVEPOINT idem_entered";

/// What a commit refuses, and a rollback takes away. Where foreign keys were not looked at, an earlier
/// one was kept.
const LOST: &str = "CREATE TEMP TABLE IF NOT EXISTS idem_transaction_was_lost \
     (number INTEGER PRIMARY KEY, \
     other INTEGER REFERENCES idem_transaction_was_lost DEFERRABLE INITIALLY DEFERRED); \
     INSERT INTO temp.idem_transaction_was_lost VALUES (NULL, -1)";

/// The code of a key that is there already.
const IS_THERE: &str = "1555";

/// The code of a savepoint that is not there; and of a table, which was there when the key was entered.
const NO_SUCH_SAVEPOINT: &str = "1";

impl Within for Sqlite {
    /// How long others are waited for is the connection's `busy_timeout`.
    async fn enter(
        connection: &mut SqliteConnection,
        at: &Address,
        _: Duration,
        _: bool,
    ) -> sqlx::Result<Entered> {
        let enter = sqlx::query_as::<_, Columns>(ENTER)
            .bind(0)
            .bind(&at.hash[..]);
        let found = Found::from(enter.fetch_one(connection).await?);
        Ok(Entered {
            // After the wait for the file.
            found: Found {
                now: clock(),
                ..found
            },
            hold: Hold::Firm,
            began: None,
        })
    }

    async fn write(
        connection: &mut SqliteConnection,
        at: &Address,
        _: Began,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        // A full disk, for one, rolls back all of a transaction.
        if let Err(error) = run(connection, UNMARK).await {
            return Err(gone_if_unmarked(connection, error).await);
        }
        if find(connection, at).await?.row.as_ref() != before {
            return Ok(false);
        }
        put(connection, at, before, Some(after), now).await?;
        Ok(true)
    }

    async fn conclude(
        savepoint: Transaction<'_, Self>,
        depth: usize,
        at: &Address,
        _: Began,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        let conclude = async move {
            if before.is_some() {
                return write_and_keep(savepoint, depth, at, before, after, now).await;
            }
            match insert(savepoint, depth, at, after, now).await {
                Err(error) if has_code(&error, IS_THERE) => Ok(false),
                inserted => inserted.map(|()| true),
            }
        };
        Whole::new(Box::pin(conclude), finish).await
    }

    async fn keep(mut savepoint: Transaction<'_, Self>, _: usize) -> sqlx::Result<()> {
        let keep = async move {
            match SqliteTransactionManager::commit(&mut savepoint).await {
                Ok(()) => {
                    mem::forget(savepoint);
                    Ok(())
                }
                Err(error) => Err(gone_if_unmarked(&mut savepoint, error).await),
            }
        };
        Whole::new(Box::pin(keep), finish).await
    }

    /// The connection's thread counts, and may not have come to the last.
    async fn level(connection: &mut SqliteConnection) -> usize {
        let _ = connection.ping().await;
        depth::<Self>(connection)
    }

    async fn back_to(connection: &mut SqliteConnection, depth: usize) {
        let back = sqlx::raw_sql(AssertSqlSafe(roll_back_to(depth)));
        let _ = back.execute(connection).await;
    }

    async fn back(connection: &mut SqliteConnection, _: &Address) -> sqlx::Result<()> {
        run(connection, BACK).await
    }

    /// Nothing here makes one transaction read only. But its owners can end what is open.
    async fn guard(connection: &mut SqliteConnection) -> bool {
        renew_if_gone(connection).await
    }

    /// By the savepoint of the body: a later one begins a transaction where there is none.
    async fn guard_body(connection: &mut SqliteConnection, depth: usize, level: usize) -> bool {
        let back = [roll_back_to(depth)].into_iter();
        let back = back.chain((depth + 1..=level).map(anew));
        let back = back.collect::<Vec<_>>().join("; ");
        let guard = async {
            let back = sqlx::raw_sql(AssertSqlSafe(back)).execute(&mut *connection);
            let error = back.await.err();
            let is_gone = error.is_some_and(|error| has_code(&error, NO_SUCH_SAVEPOINT));
            if is_gone {
                lose(connection).await;
            }
            is_gone
        };
        Whole::new(Box::pin(guard), finish).await
    }

    async fn guard_failed(
        connection: &mut SqliteConnection,
        depth: usize,
        _: Began,
    ) -> sqlx::Result<()> {
        Self::guard_body(connection, depth, depth).await;
        Ok(())
    }

    /// Nothing here makes it read only: what the caller still writes, its commit keeps.
    async fn reopen(connection: &mut SqliteConnection, depth: usize) {
        deepen::<Self>(connection, depth).await;
    }

    fn leave_opening<T>(call: Call<'_, T>) {
        finish(call);
    }

    /// The file is not the key: that somebody has it says nothing about this request.
    fn is_locked(_: &sqlx::Error) -> bool {
        false
    }

    fn is_gone(error: &sqlx::Error) -> bool {
        matches!(error, sqlx::Error::AnyDriverError(error) if error.is::<Gone>())
    }

    fn fault(error: sqlx::Error) -> StoreError {
        let fault = match error {
            sqlx::Error::AnyDriverError(error) => match error.downcast::<Gone>() {
                Ok(gone) => Fault::new(gone.0, |_| Class::Conflict),
                Err(error) => Fault::new(sqlx::Error::AnyDriverError(error), Self::class),
            },
            error => Fault::new(error, Self::class),
        };
        fault.before_commit().into()
    }
}

/// SQLite has rolled back the transaction: its mark is not there. The code of that is the one of a
/// table that is not there.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Gone(sqlx::Error);

/// Behind an error at the end of a body.
async fn gone_if_unmarked(connection: &mut SqliteConnection, error: sqlx::Error) -> sqlx::Error {
    if has_code(&error, NO_SUCH_SAVEPOINT) {
        lose(connection).await;
        return sqlx::Error::AnyDriverError(Box::new(Gone(error)));
    }
    renew_if_gone(connection).await;
    error
}

/// Right behind an error. Behind some, as where the disk is full, SQLite has rolled back the
/// transaction by itself. Then as many levels are open again as sqlx counts: it counts each until it has
/// gone back to it, and would take what is begun on this connection later for a savepoint. Nothing can
/// be committed in them, unless foreign keys are not looked at. Says whether it was so.
pub(crate) async fn renew_if_gone(connection: &mut SqliteConnection) -> bool {
    let renew_if_gone = async {
        if Sqlite::level(connection).await == 0 {
            return false;
        }
        // A transaction can be begun only where there is none.
        let is_gone = run(connection, "BEGIN").await.is_ok();
        if is_gone {
            renew_as_lost(connection).await;
        }
        is_gone
    };
    Whole::new(Box::pin(renew_if_gone), finish).await
}

/// The same where the transaction is known to be gone, whatever has been begun since.
async fn lose(connection: &mut SqliteConnection) {
    let _ = run(connection, "ROLLBACK").await;
    let _ = run(connection, "BEGIN").await;
    renew_as_lost(connection).await;
}

async fn renew_as_lost(connection: &mut SqliteConnection) {
    let _ = sqlx::raw_sql(LOST).execute(&mut *connection).await;
    let levels = 2..=depth::<Sqlite>(connection);
    let renew = levels.map(anew).collect::<Vec<_>>().join("; ");
    let renew = sqlx::raw_sql(AssertSqlSafe(renew));
    let _ = renew.execute(connection).await;
}

/// Ends what is open on a connection of a pool, or what sqlx believes to be open: it was left there by
/// somebody who does not go on.
pub(crate) async fn clear(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    if depth::<Sqlite>(connection) == 0 {
        return Ok(());
    }
    lose(connection).await;
    while Sqlite::level(connection).await > 0 {
        SqliteTransactionManager::rollback(connection).await?;
    }
    Ok(())
}

/// In one hop; then sqlx goes back to its savepoint, which its thread does while nobody waits. That
/// takes nothing back, as the savepoint was set anew behind the record; unless something before that
/// failed, or was dropped.
async fn insert(
    mut savepoint: Transaction<'_, Sqlite>,
    depth: usize,
    at: &Address,
    row: &Row,
    now: StoreTime,
) -> sqlx::Result<()> {
    let message = format!("{UNMARK}; {INSERT}; {}", anew(depth));
    let insert = bind_insert!(sqlx::query(AssertSqlSafe(message)), at, row, now);
    match insert.execute(&mut *savepoint).await {
        Ok(_) => Ok(()),
        Err(error) => Err(gone_if_unmarked(&mut savepoint, error).await),
    }
}

async fn run(connection: &mut SqliteConnection, statement: &'static str) -> sqlx::Result<()> {
    sqlx::query(statement).execute(connection).await?;
    Ok(())
}

/// Waits for the thread of the connection, which most often waits for nobody: it has the file.
fn finish<T>(mut call: Call<'_, T>) {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    while call.as_mut().poll(&mut context).is_pending() {
        thread::park();
    }
}
