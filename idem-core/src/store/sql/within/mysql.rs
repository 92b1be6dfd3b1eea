//! MySQL and MariaDB: the row itself is the lock. An empty one is inserted where there is none, as
//! the store's own calls do; if the savepoint is rolled back it is gone. What stands in it is read
//! by a locking read: at REPEATABLE READ a plain one shows what was there when the transaction
//! began.
//!
//! The server waits in whole seconds, at least one, and has the patience in a variable of the
//! session. MariaDB can set it for a statement. For MySQL it is set and put back around it; only a
//! call that is dropped while it waits in vain leaves it at the shorter time.

use std::time::Duration;

use sqlx::{AssertSqlSafe, FromRow, MySql, MySqlConnection};

use super::super::dialect::Dialect;
use super::super::fault::{Class, Fault};
use super::super::mysql::{FIND, hex, insert_or_lock, put};
use super::super::row::{Address, Columns, Found, Row};
use super::{Entered, Hold, Within};
use crate::error::StoreError;
use crate::record::StoreTime;

const PATIENT_AGAIN: &str = "SET SESSION innodb_lock_wait_timeout = @idem_patience";

impl Within for MySql {
    async fn enter(
        connection: &mut MySqlConnection,
        at: &Address,
        patience: Duration,
    ) -> sqlx::Result<Entered> {
        let message = sqlx::raw_sql(AssertSqlSafe(lock(at, patience)));
        let rows = match message.fetch_all(&mut *connection).await {
            Ok(rows) => rows,
            Err(error) => {
                // Where this fails, too, there is no session any more.
                let _ = Self::run(connection, PATIENT_AGAIN).await;
                return Err(error);
            }
        };
        let row = rows.last().ok_or(sqlx::Error::RowNotFound)?;
        Ok(Entered {
            found: filled(Columns::from_row(row)?),
            hold: Hold::Firm,
        })
    }

    async fn write(
        connection: &mut MySqlConnection,
        at: &Address,
        _: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        put(connection, at, Some(after), now).await?;
        // The row is locked.
        Ok(true)
    }

    async fn read(connection: &mut MySqlConnection, at: &Address) -> sqlx::Result<Found> {
        let find = sqlx::query_as::<_, Columns>(FIND).bind(&at.hash[..]);
        Ok(filled(find.fetch_one(connection).await?))
    }

    async fn run(connection: &mut MySqlConnection, statement: &'static str) -> sqlx::Result<()> {
        sqlx::raw_sql(statement).execute(connection).await?;
        Ok(())
    }

    fn is_locked(error: &sqlx::Error) -> bool {
        matches!(error, sqlx::Error::Database(error) if Self::class(&**error) == Class::Locked)
    }

    fn fault(error: sqlx::Error) -> StoreError {
        Fault::new(error, Self::class).before_commit().into()
    }
}

/// Lock and read: one message. What stands in `/*M! */` is read by MariaDB alone.
fn lock(at: &Address, patience: Duration) -> String {
    let seconds = patience.as_secs().max(1);
    let find = FIND.replace('?', &format!("x'{}'", hex(&at.hash)));
    format!(
        "SET @idem_patience = @@SESSION.innodb_lock_wait_timeout, \
         SESSION innodb_lock_wait_timeout = \
         IF(VERSION() LIKE '%MariaDB%', @@SESSION.innodb_lock_wait_timeout, {seconds}); \
         /*M! SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR */ {}; \
         {PATIENT_AGAIN}; \
         {find} FOR UPDATE",
        insert_or_lock(at)
    )
}

/// A row that was only just inserted holds nothing.
fn filled(columns: Columns) -> Found {
    let mut found = Found::from(columns);
    found.row = found.row.filter(|row| !row.record.is_empty());
    found
}
