//! SQLite: whoever writes has the whole file. So the first statement is a write that changes
//! nothing; a transaction that has only read until then may find that it is too late for that, and
//! is told so (`SQLITE_BUSY`). Begun by `begin_with("BEGIN IMMEDIATE")` it has the file already.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection};

use super::super::dialect::Dialect;
use super::super::fault::{Class, Fault};
use super::super::row::{Address, Row};
use super::super::sqlite::{find, put};
use super::{Call, Entered, Hold, Within, back, mark, unmark};
use crate::error::StoreError;
use crate::record::StoreTime;

/// No key has this hash.
const TAKE_THE_FILE: &str = "UPDATE idempotent_record SET fence = fence WHERE key_hash = x''";

impl Within for Sqlite {
    /// How long others are waited for is the connection's `busy_timeout`.
    async fn enter(
        connection: &mut SqliteConnection,
        at: &Address,
        _: Duration,
        _: bool,
    ) -> sqlx::Result<Entered> {
        sqlx::query(TAKE_THE_FILE).execute(&mut *connection).await?;
        let found = find(connection, at).await?;
        run(connection, mark(at)).await?;
        Ok(Entered {
            found,
            hold: Hold::Firm,
        })
    }

    async fn write(
        connection: &mut SqliteConnection,
        at: &Address,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        // A full disk, for one, rolls back all of a transaction.
        run(connection, unmark(at)).await.map_err(gone)?;
        if find(connection, at).await?.row.as_ref() != before {
            return Ok(false);
        }
        put(connection, at, before, Some(after), now).await?;
        Ok(true)
    }

    async fn back(connection: &mut SqliteConnection, at: &Address) -> sqlx::Result<()> {
        run(connection, back(at)).await
    }

    /// Nothing here makes one transaction read only.
    async fn guard(_: &mut SqliteConnection) {}

    async fn reopen(_: &mut SqliteConnection, _: usize) {}

    fn leave_opening<T>(call: Call<'_, T>) {
        finish(call);
    }

    fn leave_keeping<T>(call: Call<'_, T>) {
        finish(call);
    }

    /// The file is not the key: that somebody has it says nothing about this request.
    fn is_locked(_: &sqlx::Error) -> bool {
        false
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

fn gone(error: sqlx::Error) -> sqlx::Error {
    match error {
        sqlx::Error::Database(_) => sqlx::Error::AnyDriverError(Box::new(Gone(error))),
        error => error,
    }
}

async fn run(connection: &mut SqliteConnection, statement: String) -> sqlx::Result<()> {
    let statement = sqlx::query(AssertSqlSafe(statement));
    statement.execute(connection).await?;
    Ok(())
}

/// Waits for the thread of the connection, which waits for nobody: it has the file.
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
