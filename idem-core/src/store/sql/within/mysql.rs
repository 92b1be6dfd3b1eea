//! MySQL and MariaDB: the row itself is the lock. An empty one is inserted where there is none, as
//! the store's own calls do; if the savepoint is rolled back it is gone. What stands in it is read
//! by a locking read: at REPEATABLE READ a plain one shows what was there when the transaction
//! began.
//!
//! The server waits in whole seconds, at least one, and has the patience in a variable of the
//! session. MariaDB can set it for a statement, and nothing is to be put back. For MySQL it is set and
//! put back around it. There a call that is dropped while it waits in vain leaves it at the shorter
//! time, as a message ends with its first error and nothing can be sent from there; the next call on
//! the session puts it right.
//!
//! A deadlock, and with `innodb_rollback_on_timeout` a time-out too, ends the whole transaction,
//! of which sqlx knows nothing. What is written then commits by itself. So the write first lets a
//! mark of this transaction go, and after an error a transaction that may write nothing is begun
//! in place of one that is gone.

use std::mem;
use std::time::Duration;

use sqlx::mysql::{MySqlDatabaseError, MySqlTransactionManager};
use sqlx::{AssertSqlSafe, Connection, MySql, MySqlConnection, Transaction};
use sqlx_core::transaction::TransactionManager;

use super::super::dialect::Dialect;
use super::super::fault::{Class, Fault};
use super::super::hex::hex;
use super::super::mysql::{UPDATE, find, found, insert_or_lock, lock_wait_timeout};
use super::super::row::{Address, Row, micros};
use super::{
    Began, Call, Entered, Hold, Within, back, deepen, depth, mark, roll_back_to, unmark,
    write_and_keep,
};
use crate::error::StoreError;
use crate::record::StoreTime;

/// Without the variable nothing is to be put back.
const PATIENT_AGAIN: &str = "SET SESSION innodb_lock_wait_timeout = \
     CAST(COALESCE(@idem_tx_patience, @@SESSION.innodb_lock_wait_timeout) AS UNSIGNED); \
     SET @idem_tx_patience = NULL";

/// In a transaction the first statement is refused (1568), and the rest is not run. The savepoint is
/// the one that sqlx believes to be in, and rolls back to.
const GUARD: &str = "SET TRANSACTION READ ONLY; START TRANSACTION; SAVEPOINT _sqlx_savepoint_1";

/// A transaction that can write nothing, without savepoints.
const ANEW: &str = "ROLLBACK; START TRANSACTION READ ONLY";

/// `ER_SP_DOES_NOT_EXIST`
const NO_SUCH_SAVEPOINT: u16 = 1305;

/// `ER_CANT_CHANGE_TX_CHARACTERISTICS`
const IS_IN_A_TRANSACTION: u16 = 1568;

/// Answers that nobody has waited for: no more than there were levels, and one.
const MOST_ON_THEIR_WAY: usize = 100;

impl Within for MySql {
    async fn enter(
        connection: &mut MySqlConnection,
        at: &Address,
        patience: Duration,
        _: bool,
    ) -> sqlx::Result<Entered> {
        match found(connection, lock(at, patience)).await {
            Ok(found) => Ok(Entered {
                found,
                hold: Hold::Firm,
                began: None,
            }),
            Err(error) => {
                // Where this fails, too, there is no session any more.
                let _ = sqlx::raw_sql(PATIENT_AGAIN).execute(connection).await;
                Err(error)
            }
        }
    }

    async fn write(
        connection: &mut MySqlConnection,
        at: &Address,
        _: Began,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> sqlx::Result<bool> {
        let check = format!("{}; {}", unmark(at), find_and_lock(at));
        if found(connection, check).await?.row.as_ref() != before {
            return Ok(false);
        }
        let update = sqlx::raw_sql(AssertSqlSafe(update(at, after, now)));
        update.execute(connection).await?;
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
        write_and_keep(savepoint, depth, at, before, after, now).await
    }

    /// The server has one savepoint of a name: if this is dropped, sqlx goes back to it or is told
    /// that there is none.
    async fn keep(mut savepoint: Transaction<'_, Self>, _: usize) -> sqlx::Result<()> {
        let kept = MySqlTransactionManager::commit(&mut savepoint).await;
        match kept {
            Ok(()) => mem::forget(savepoint),
            Err(_) => {
                Self::guard(&mut savepoint).await;
            }
        }
        kept
    }

    async fn level(connection: &mut MySqlConnection) -> usize {
        // What sqlx has queued for something dropped, it sends with the next statement. (Its method is
        // hidden, and what it says is held by `tests/transaction/mysql.rs`.)
        if connection.should_flush() {
            hear(connection).await;
        }
        depth::<Self>(connection)
    }

    async fn back_to(connection: &mut MySqlConnection, depth: usize) {
        let back = sqlx::raw_sql(AssertSqlSafe(roll_back_to(depth)));
        let _ = back.execute(connection).await;
    }

    async fn back(connection: &mut MySqlConnection, at: &Address) -> sqlx::Result<()> {
        let back = sqlx::raw_sql(AssertSqlSafe(back(at)));
        back.execute(connection).await?;
        Ok(())
    }

    async fn guard(connection: &mut MySqlConnection) -> bool {
        for _ in 0..MOST_ON_THEIR_WAY {
            let guarded = sqlx::raw_sql(GUARD).execute(&mut *connection).await;
            match guarded {
                Ok(_) => return true,
                Err(error) if has_number(&error, IS_IN_A_TRANSACTION) => return false,
                // Of what was sent before, and this was not sent.
                Err(sqlx::Error::Database(_)) => {}
                // There is no session any more.
                Err(_) => return false,
            }
        }
        false
    }

    /// The savepoints are sqlx's belief alone, and the server refuses to let them go.
    async fn reopen(connection: &mut MySqlConnection, depth: usize) {
        hear(connection).await;
        let _ = sqlx::raw_sql(ANEW).execute(&mut *connection).await;
        if self::depth::<Self>(connection) == 0
            && let Ok(begun) = connection.begin_with("START TRANSACTION READ ONLY").await
        {
            mem::forget(begun);
        }
        deepen::<Self>(connection, depth).await;
        let _ = sqlx::raw_sql(ANEW).execute(connection).await;
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
        has_number(error, NO_SUCH_SAVEPOINT)
    }

    fn fault(error: sqlx::Error) -> StoreError {
        Fault::new(error, Self::class).of_the_caller().into()
    }
}

fn has_number(error: &sqlx::Error, number: u16) -> bool {
    let error = error.as_database_error();
    let error = error.and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
    error.is_some_and(|error| error.number() == number)
}

/// Hears what became of the rollbacks that sqlx has sent for what was dropped. Those to a savepoint that
/// is gone fail, and whoever asks next is told so in place of being asked for anything. Not by a ping: of
/// one that is dropped, sqlx takes the answer for that of what comes next.
async fn hear(connection: &mut MySqlConnection) {
    for _ in 0..MOST_ON_THEIR_WAY {
        match sqlx::raw_sql("DO NULL").execute(&mut *connection).await {
            Err(sqlx::Error::Database(_)) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Lock, read and mark: one message. What stands in `/*M! */` is read by MariaDB alone, which also
/// knows a patience of 0. But duplicates of a finished request hold its row as well, each for a
/// moment, and all but one would be told that it runs. MySQL sets the variable only to a whole number,
/// and what mixes signed and unsigned ones is a decimal there.
fn lock(at: &Address, patience: Duration) -> String {
    let seconds = lock_wait_timeout(patience);
    format!(
        "SET @idem_tx_patience = IF(VERSION() LIKE '%MariaDB%', NULL, \
         CAST(COALESCE(@idem_tx_patience, @@SESSION.innodb_lock_wait_timeout) AS UNSIGNED)), \
         SESSION innodb_lock_wait_timeout = \
         CAST(IF(VERSION() LIKE '%MariaDB%', \
         @@SESSION.innodb_lock_wait_timeout, {seconds}) AS UNSIGNED); \
         /*M! SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR */ {}; \
         {PATIENT_AGAIN}; {}; {}",
        insert_or_lock(at),
        find_and_lock(at),
        mark(at)
    )
}

fn find_and_lock(at: &Address) -> String {
    format!("{} FOR UPDATE", find(at))
}

/// As text, like all that is sent here: where sqlx is dropped while it prepares a statement, its
/// connection is out of step from then on.
fn update(at: &Address, row: &Row, now: StoreTime) -> String {
    let bytes = |bytes: &[u8]| format!("x'{}'", hex(bytes));
    let or_null = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
    let values = [
        bytes(&row.request_id),
        row.status.to_string(),
        row.fence.to_string(),
        row.attempt.to_string(),
        or_null(row.fingerprint.as_deref().map(bytes)),
        row.checkpoint.to_string(),
        or_null(row.lease_until.map(|time| time.to_string())),
        or_null(row.response_data.as_deref().map(bytes)),
        row.expire_at.to_string(),
        bytes(&row.record),
        micros(now).to_string(),
        bytes(&at.hash),
    ];
    let mut values = values.iter();
    let mut pieces = UPDATE.split('?');
    let mut update = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        update.extend(values.next().map(String::as_str));
        update.push_str(piece);
    }
    update
}
