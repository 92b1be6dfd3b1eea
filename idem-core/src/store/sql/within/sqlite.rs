//! SQLite: whoever writes has the whole file. So the first statement is a write that changes
//! nothing; a transaction that has only read until then may find that it is too late for that, and
//! is told so (`SQLITE_BUSY`). Begun by `begin_with("BEGIN IMMEDIATE")` it has the file already.

use std::time::Duration;

use sqlx::{Sqlite, SqliteConnection};

use super::super::dialect::Dialect;
use super::super::fault::Fault;
use super::super::row::{Address, Found, Row};
use super::super::sqlite::{find, put};
use super::{Entered, Hold, Within};
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
    ) -> sqlx::Result<Entered> {
        sqlx::query(TAKE_THE_FILE).execute(&mut *connection).await?;
        Ok(Entered {
            found: find(connection, at).await?,
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
        put(connection, at, before, Some(after), now).await?;
        Ok(true)
    }

    async fn read(connection: &mut SqliteConnection, at: &Address) -> sqlx::Result<Found> {
        find(connection, at).await
    }

    async fn run(connection: &mut SqliteConnection, statement: &'static str) -> sqlx::Result<()> {
        sqlx::query(statement).execute(connection).await?;
        Ok(())
    }

    /// The file is not the key: that somebody has it says nothing about this request.
    fn is_locked(_: &sqlx::Error) -> bool {
        false
    }

    fn fault(error: sqlx::Error) -> StoreError {
        Fault::new(error, Self::class).before_commit().into()
    }
}
