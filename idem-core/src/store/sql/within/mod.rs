//! Records in somebody else's transaction, beside what they guard.
//!
//! The verbs of [`Store`](crate::store::Store) are transactions of their own. Here the caller's
//! transaction is the step: the key is held from [`enter`](Within::enter) until it ends, and the
//! record is written in it, usually once and with its result. All of this happens in a savepoint
//! that the caller of these functions has opened, so that an error leaves the transaction usable.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::time::Duration;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
use sqlx::error::DatabaseError;
use sqlx::{Connection, Database, Transaction};
use sqlx_core::transaction::TransactionManager;

#[cfg(feature = "sqlite")]
pub(crate) use self::sqlite::{clear, renew_if_gone};
use super::row::{Address, Found, Row};
use crate::error::StoreError;
use crate::record::StoreTime;

/// When a transaction began, where no mark in it tells it from a later one of the session: as
/// PostgreSQL keeps it, which is compared without any arithmetic.
pub(crate) type Began = Option<[u8; 8]>;

/// What stood at a key when it was asked for.
#[derive(Debug)]
pub struct Entered {
    pub(crate) found: Found,
    pub(crate) hold: Hold,
    pub(crate) began: Began,
}

/// Whether the key is held now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Until the transaction ends; what was found is what stands.
    Firm,
    /// The same, but what was found may be old: only a write tells.
    FirmAfterAWrite,
    /// Somebody else's transaction has it. What was found was committed before that one.
    Elsewhere,
}

/// A database, as records in somebody else's transaction need it.
pub trait Within: Database {
    /// Asks for the key, waits for it for about `patience`, and reads it with the time after the
    /// wait; sets a mark behind that where [`back`](Self::back) `may_go_back`, or the database needs
    /// one. Fails with an error that [`is_locked`](Self::is_locked) if it waited in vain.
    fn enter(
        connection: &mut Self::Connection,
        at: &Address,
        patience: Duration,
        may_go_back: bool,
    ) -> impl Future<Output = sqlx::Result<Entered>> + Send;

    /// Writes `after` in place of `before`; says `false` if that does not stand there any more.
    /// Fails, and writes nothing, if the transaction in which the key was entered is no more.
    fn write(
        connection: &mut Self::Connection,
        at: &Address,
        began: Began,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> impl Future<Output = sqlx::Result<bool>> + Send;

    /// The same at the end of `savepoint`, which sqlx opened as the level `depth`, and keeps what was
    /// done in it. If it does not, or is dropped before its end, all of that is taken back.
    fn conclude(
        savepoint: Transaction<'_, Self>,
        depth: usize,
        at: &Address,
        began: Began,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> impl Future<Output = sqlx::Result<bool>> + Send;

    /// Lets `savepoint`, which sqlx opened as the level `depth`, go and keeps what was done in it. If
    /// it does not, or is dropped before its end, all of that is taken back, and nothing before it.
    fn keep(
        savepoint: Transaction<'_, Self>,
        depth: usize,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// How many transactions and savepoints are open, when all that is on its way has been done.
    fn level(connection: &mut Self::Connection) -> impl Future<Output = usize> + Send;

    /// Goes back to the savepoint that sqlx opened as the level `depth` and no longer counts.
    fn back_to(connection: &mut Self::Connection, depth: usize) -> impl Future<Output = ()> + Send;

    /// Takes back what was done since the mark, and keeps the key.
    fn back(
        connection: &mut Self::Connection,
        at: &Address,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// After an error: where the server itself has ended the transaction, sees to it that nothing
    /// is kept until the caller ends it, too. Each statement would be committed alone. Says whether it
    /// is known to be so.
    fn guard(connection: &mut Self::Connection) -> impl Future<Output = bool> + Send;

    /// The same after a body whose savepoint sqlx opened as the level `_depth`, and which has left the
    /// connection at `_level`.
    fn guard_body(
        connection: &mut Self::Connection,
        _depth: usize,
        _level: usize,
    ) -> impl Future<Output = bool> + Send {
        Self::guard(connection)
    }

    /// The same after a body that returned an error, in the savepoint that sqlx opened as the level
    /// `depth`. Fails with an error that [`is_gone`](Self::is_gone) where this database can tell that
    /// the transaction in which it began is no more.
    fn guard_failed(
        connection: &mut Self::Connection,
        _depth: usize,
        _began: Began,
    ) -> impl Future<Output = sqlx::Result<()>> + Send {
        async {
            Self::guard(connection).await;
            Ok(())
        }
    }

    /// After sqlx has ended what the caller has open, in place of a savepoint that it could not
    /// open: the same, and as many levels as there were, so that each of its owners ends its own.
    /// A body in such a level can not keep what sqlx has taken back: to let a savepoint go fails.
    fn reopen(connection: &mut Self::Connection, depth: usize) -> impl Future<Output = ()> + Send;

    /// What becomes of a savepoint that is being opened when nobody waits for it any more. To drop
    /// it would roll back the transaction around it.
    fn leave_opening<T>(call: Call<'_, T>);

    /// Whether somebody else's transaction kept the key for all of the patience.
    fn is_locked(error: &sqlx::Error) -> bool;

    /// Whether an error at the end of a body says that the transaction it began in is no more.
    fn is_gone(error: &sqlx::Error) -> bool;

    /// What an error means. Nothing of the transaction was committed.
    fn fault(error: sqlx::Error) -> StoreError;
}

/// A call of sqlx that is under way.
pub(crate) type Call<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[cfg(any(feature = "mysql", feature = "sqlite"))]
async fn write_and_keep<D: Within>(
    mut savepoint: Transaction<'_, D>,
    depth: usize,
    at: &Address,
    before: Option<&Row>,
    after: &Row,
    now: StoreTime,
) -> sqlx::Result<bool> {
    let written = D::write(&mut savepoint, at, None, before, after, now).await;
    if let Ok(true) = written {
        D::keep(savepoint, depth).await?;
    } else {
        D::guard(&mut savepoint).await;
    }
    written
}

/// The mark behind the lock of a key. Bodies in bodies have other keys, and MySQL forgets a mark
/// when another one gets its name. It ends with the savepoint around it.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn mark(at: &Address) -> String {
    format!("SAVEPOINT {}", name(at))
}

/// Goes back to the mark, which stays.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn back(at: &Address) -> String {
    format!("ROLLBACK TO SAVEPOINT {}", name(at))
}

/// Lets the mark go. Where there is none, the transaction in which it was set is no more.
#[cfg(feature = "mysql")]
fn unmark(at: &Address) -> String {
    format!("RELEASE SAVEPOINT {}", name(at))
}

/// In place of the savepoint that sqlx opened as the level `depth`, one of the same name: what sqlx
/// then goes back to.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn anew(depth: usize) -> String {
    format!("SAVEPOINT {}", level_name(depth))
}

/// Lets the savepoint of the level `depth` go.
#[cfg(feature = "postgres")]
fn release(depth: usize) -> String {
    format!("RELEASE SAVEPOINT {}", level_name(depth))
}

/// Goes back to the savepoint of the level `depth`, which stays.
fn roll_back_to(depth: usize) -> String {
    format!("ROLLBACK TO SAVEPOINT {}", level_name(depth))
}

/// How sqlx names the savepoint of a level. The first level is the transaction.
fn level_name(depth: usize) -> String {
    format!("_sqlx_savepoint_{}", depth.saturating_sub(1))
}

/// How many transactions and savepoints sqlx believes to be open.
pub(crate) fn depth<D: Database>(connection: &D::Connection) -> usize {
    D::TransactionManager::get_transaction_depth(connection)
}

/// Opens levels until there are `depth`. Leaked, as their owners are to end them.
async fn deepen<D: Database>(connection: &mut D::Connection, depth: usize) {
    while self::depth::<D>(connection) < depth {
        match connection.begin().await {
            Ok(begun) => mem::forget(begun),
            Err(_) => return,
        }
    }
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn has_code(error: &sqlx::Error, code: &str) -> bool {
    let error = error.as_database_error();
    error.and_then(DatabaseError::code).as_deref() == Some(code)
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
fn name(at: &Address) -> String {
    let number = at.hash.first_chunk().copied().map_or(0, u64::from_be_bytes);
    format!("idem_{number:016x}")
}
