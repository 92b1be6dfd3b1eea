//! What differs between the databases.

use std::future::Future;
use std::time::Duration;

use sqlx::error::DatabaseError;

use super::fault::{self, Class};
use super::held;
use super::row::{Address, Entry, Found, Row};
use super::span::Span;
use crate::error::StoreError;
use crate::record::StoreTime;
use crate::sql::driver::Trouble;
use crate::store::Finding;

/// What a connection to a database is opened with.
pub(super) type Options<D> = <<D as sqlx::Database>::Connection as sqlx::Connection>::Options;

/// A database, as the records need it.
pub(super) trait Dialect: sqlx::Database {
    /// A transaction that keeps everybody else from one key. Dropped, it is rolled back.
    type Held: Send + 'static;

    /// How many calls can write at the same time; more wait here, in their order, not there.
    const WRITERS: usize;

    /// Whether who writes keeps everybody from everything, in other processes, too.
    const IS_LOCKED_AS_A_WHOLE: bool = Self::WRITERS == 1;

    /// Whether another pool with these options would lead to another database.
    fn is_of_its_pool(_: &Options<Self>) -> bool {
        false
    }

    /// Begins a transaction, waits for the key for at most `patience`, and reads it, with the
    /// time after the wait.
    fn lock(
        connection: held::Held<Self>,
        at: &Address,
        patience: Duration,
    ) -> impl Future<Output = sqlx::Result<(Self::Held, Found)>> + Send;

    /// Writes `after` in place of `before`; says `false` if that does not stand there any more.
    fn put(
        held: &mut Self::Held,
        at: &Address,
        before: Option<&Row>,
        after: Option<&Row>,
        now: StoreTime,
    ) -> impl Future<Output = sqlx::Result<bool>> + Send;

    /// Commits.
    fn commit(held: Self::Held) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Ends a transaction that has nothing to keep.
    fn release(held: Self::Held) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Reads without a lock.
    fn read(
        connection: &mut Self::Connection,
        at: &Address,
    ) -> impl Future<Output = sqlx::Result<Found>> + Send;

    /// The rows of a span, in its order.
    fn page(
        connection: &mut Self::Connection,
        span: &Span,
    ) -> impl Future<Output = sqlx::Result<Vec<Entry>>> + Send;

    /// The time, where it is the process's own and no connection is needed.
    fn clock() -> Option<StoreTime> {
        None
    }

    /// The time.
    fn now(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = sqlx::Result<StoreTime>> + Send;

    /// Creates the table, or changes it from an earlier version.
    fn migrate(connection: held::Held<Self>)
    -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes rows whose time is over, at most so many; says how many.
    fn purge(
        connection: held::Held<Self>,
        batch: u32,
    ) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// What is wrong with the set-up.
    fn check(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = sqlx::Result<Vec<Finding>>> + Send;

    /// Where the database is, for people; without the password.
    fn place(options: &Options<Self>) -> String;

    /// What an error of this database means.
    fn class(error: &dyn DatabaseError) -> Class;
}

/// How long the server waits for the next word of a call that has a key. Of one that was cut off,
/// or whose machine lost its power, it hears nothing, not even that it has gone, and by itself would
/// keep the key for it for hours. The call itself gives up before that.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn longest_silence(patience: Duration) -> Duration {
    const AT_LEAST: Duration = Duration::from_secs(5);
    patience.saturating_mul(16).max(AT_LEAST)
}

/// What an error asks of the caller, for statements that are not the store's own.
pub(crate) trait Classes: sqlx::Database {
    /// See [`Trouble`].
    fn trouble(error: &sqlx::Error) -> Trouble;
}

impl<D: Dialect> Classes for D {
    fn trouble(error: &sqlx::Error) -> Trouble {
        match fault::class(error, D::class) {
            Class::Conflict => Trouble::Serialization,
            Class::Deadlock => Trouble::Deadlock,
            Class::Locked | Class::Busy => Trouble::Locked,
            Class::Unavailable | Class::Refused | Class::ReadOnly | Class::NotLetIn => {
                Trouble::Away
            }
            Class::Stopped
            | Class::Overslept
            | Class::Unprepared
            | Class::Misconfigured
            | Class::Protocol => Trouble::Other,
        }
    }
}
