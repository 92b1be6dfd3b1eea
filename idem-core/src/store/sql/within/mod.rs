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
use std::time::Duration;

use sqlx::Database;

use super::row::{Address, Found, Row};
use crate::error::StoreError;
use crate::record::StoreTime;

/// What stood at a key when it was asked for.
#[derive(Debug)]
pub struct Entered {
    pub(crate) found: Found,
    pub(crate) hold: Hold,
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
    /// wait. Fails with an error that [`is_locked`](Self::is_locked) if it waited in vain.
    fn enter(
        connection: &mut Self::Connection,
        at: &Address,
        patience: Duration,
    ) -> impl Future<Output = sqlx::Result<Entered>> + Send;

    /// Writes `after` in place of `before`; says `false` if that does not stand there any more.
    fn write(
        connection: &mut Self::Connection,
        at: &Address,
        before: Option<&Row>,
        after: &Row,
        now: StoreTime,
    ) -> impl Future<Output = sqlx::Result<bool>> + Send;

    /// Reads without asking for the key.
    fn read(
        connection: &mut Self::Connection,
        at: &Address,
    ) -> impl Future<Output = sqlx::Result<Found>> + Send;

    /// Runs one of [`MARK`] and [`BACK`].
    fn run(
        connection: &mut Self::Connection,
        statement: &'static str,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Whether somebody else's transaction kept the key for all of the patience.
    fn is_locked(error: &sqlx::Error) -> bool;

    /// What an error means. Nothing of the transaction was committed.
    fn fault(error: sqlx::Error) -> StoreError;
}

/// Where a body begins that may have to be taken back alone. It ends with the savepoint around it,
/// so that nobody has to release it.
pub(crate) const MARK: &str = "SAVEPOINT idem_body";

/// Takes back what was done since [`MARK`].
pub(crate) const BACK: &str = "ROLLBACK TO SAVEPOINT idem_body";
