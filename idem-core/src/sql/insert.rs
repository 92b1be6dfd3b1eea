//! Insert a row, or read the one that is in its way.

use sqlx::query::{Query, QueryAs};
use sqlx::{Connection, FromRow};

use super::driver::Of;
use super::unique::Unique;
use super::{Database, SqlError};

/// The row, and whether it is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insertion<T> {
    /// This call has inserted it.
    Inserted(T),
    /// It was there.
    Existing(T),
}

impl<T> Insertion<T> {
    /// The row, new or not.
    #[must_use]
    pub fn into_row(self) -> T {
        match self {
            Self::Inserted(row) | Self::Existing(row) => row,
        }
    }

    /// Whether this call has inserted it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        matches!(self, Self::Inserted(_))
    }
}

/// Why there is neither a new row nor an existing one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// Another unique constraint is violated, by a row that the select does not find: this is not
    /// the same request, but a clash of two. Nothing was inserted, and the transaction can go on.
    #[error("another unique constraint is in the way: {constraint}")]
    Conflict {
        /// As the database names it: by its name, in SQLite by `table.column, table.column`.
        constraint: String,
        /// What the database said.
        source: sqlx::Error,
    },
    /// There is a row in the way, and it can not be read: it was deleted meanwhile, or is newer
    /// than the snapshot of this transaction. Run the whole transaction again. (Or the select asks
    /// by something else than the columns of the constraint; then it stays so.)
    #[error("the row in the way is not seen; run the transaction again")]
    NotSeen,
    /// The insert gave no error, and the select finds no row: they do not fit together.
    #[error("the row was inserted, and the select does not find it: it asks for another")]
    NotFound,
    /// SQLite has rolled back the whole transaction with the insert, as a constraint with `ON
    /// CONFLICT ROLLBACK` asks for: what was done in it is gone, and nothing can be committed until it
    /// has been rolled back, unless `foreign_keys` is off. Return the error, and roll back.
    #[error("the insert met a constraint that rolled back the whole transaction")]
    RolledBack {
        /// What the database said.
        source: sqlx::Error,
    },
    /// PostgreSQL has given up the whole transaction with the insert: sqlx has not begun it, and so
    /// there was no savepoint. Somebody has sent a `BEGIN` by hand, or a `begin()` was dropped while it
    /// was on the wire. Send a `ROLLBACK`, or close the connection: a pool would hand it on.
    #[error("the insert met a constraint, and ended a transaction that sqlx has not begun")]
    NotBegun {
        /// What the database said.
        source: sqlx::Error,
    },
    /// A statement failed: a foreign key, a check, a table that is not there, a deadlock.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

impl InsertError {
    /// Whether the same transaction, run again from its begin, may do better.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotSeen => true,
            Self::Sql(error) => error.is_retryable(),
            Self::Conflict { .. }
            | Self::NotFound
            | Self::RolledBack { .. }
            | Self::NotBegun { .. } => false,
        }
    }
}

/// Inserts a row, or reads the one that was inserted before under the same unique constraint: so a
/// repeated request gets the first one's row.
///
/// `insert` is a plain `INSERT` of one row. One with `ON CONFLICT DO UPDATE` or `ON DUPLICATE KEY
/// UPDATE`, or a `REPLACE`, does not say whether its row is new; one with `ON CONFLICT DO NOTHING`,
/// or an `INSERT IGNORE`, does, but not what is in its way. Where a trigger puts the row elsewhere
/// (`BEFORE` with `RETURN NULL` in PostgreSQL, `INSTEAD OF` on a view), the insert touches no row
/// itself, and the new row is told as [`Existing`](Insertion::Existing).
///
/// `select` asks for that row by the columns of the constraint, without a locking clause: where a
/// plain read can be older than the row, in MySQL and MariaDB, it is made a locking one here. It is
/// run in either case.
///
/// `constraint` is a unique constraint that is not deferred, by its name in PostgreSQL, by its
/// key's in MySQL (`PRIMARY` is one). In SQLite, which keeps no names of constraints, it is the
/// name of an index (`CREATE UNIQUE INDEX`), which serves all three, or the columns as its errors
/// name them: `"orders.request_id"`, `"orders.shop, orders.number"`. MySQL and SQLite say only in
/// the text of the error which constraint it was; nothing else is read there.
///
/// When the new row violates several constraints, which of them is reported first is the
/// database's choice. So a row that the select finds is the answer, whatever was reported.
///
/// # Examples
/// ```no_run
/// # #[cfg(feature = "postgres")]
/// # mod example {
/// use idem_core::sql::{Insertion, insert_or_get};
///
/// async fn create(pool: &sqlx::PgPool, request: &str, item: &str) -> anyhow::Result<i64> {
///     let insert = sqlx::query("INSERT INTO orders (request_id, item) VALUES ($1, $2)")
///         .bind(request)
///         .bind(item);
///     let select = sqlx::query_as("SELECT id FROM orders WHERE request_id = $1").bind(request);
///
///     let mut tx = pool.begin().await?;
///     let order = insert_or_get(&mut *tx, "orders_by_request", insert, select).await?;
///     if let Insertion::Inserted((id,)) = order {
///         let event = sqlx::query("INSERT INTO outbox (order_id) VALUES ($1)").bind::<i64>(id);
///         event.execute(&mut *tx).await?;
///     }
///     tx.commit().await?;
///     let (id,) = order.into_row();
///     Ok(id)
/// }
/// # }
/// ```
///
/// # Errors
/// [`InsertError::Conflict`] of another constraint; [`InsertError::NotSeen`], which at REPEATABLE
/// READ and SERIALIZABLE in PostgreSQL is part of normal life; [`InsertError::RolledBack`], in a
/// transaction of sqlx on SQLite; [`InsertError::NotBegun`], in one that is not of sqlx on PostgreSQL;
/// errors of the database. After
/// `Conflict` and `NotSeen` the transaction can go on, if it was begun by sqlx: in PostgreSQL the
/// insert stands in a savepoint.
///
/// # Cancel safety
/// Outside of a transaction, dropping it leaves open whether the row was inserted: call it again.
/// In one, roll back. On PostgreSQL that is not needed: the row is inserted or not, and what was done
/// before stays, unless the next statement fails, by an error that was on its way to the dropped call.
/// On MySQL, a drop while sqlx prepares a statement, as it does once on each connection, leaves the
/// connection out of step: its pool loses it, and a `rollback()` on it may not return. Where the
/// caller can go away, run it in a task of its own (`tokio::spawn`).
///
/// # Concurrent calls on the same key
/// One inserts; the others wait for its transaction to end, then read its row, or insert theirs.
pub async fn insert_or_get<C, DB, T>(
    connection: &mut C,
    constraint: &str,
    insert: Query<'_, DB, DB::Arguments>,
    select: QueryAs<'_, DB, T, DB::Arguments>,
) -> Result<Insertion<T>, InsertError>
where
    C: Connection<Database = DB>,
    DB: Database + sqlx::Database<Connection = C>,
    T: Send + Unpin + for<'r> FromRow<'r, DB::Row>,
{
    let told = inserted_or_got(connection, constraint, insert, select).await;
    if told.is_err() {
        // A full disk, for one, takes the whole transaction with it.
        Of::<DB>::is_rolled_back(connection).await;
    }
    told
}

async fn inserted_or_got<DB, T>(
    connection: &mut DB::Connection,
    constraint: &str,
    insert: Query<'_, DB, DB::Arguments>,
    select: QueryAs<'_, DB, T, DB::Arguments>,
) -> Result<Insertion<T>, InsertError>
where
    DB: Database,
    T: Send + Unpin + for<'r> FromRow<'r, DB::Row>,
{
    let inserted = match inserted::<DB>(Of::<DB>::insert(connection, insert).await)? {
        Inserted::Refused(source) if Of::<DB>::is_rolled_back(connection).await => {
            return Err(InsertError::RolledBack { source });
        }
        inserted => inserted,
    };
    let (inserted, row) = match (inserted, Of::<DB>::select(connection, select).await) {
        (Inserted::Refused(source), Err(error)) if Of::<DB>::is_given_up(&error) => {
            return Err(InsertError::NotBegun { source });
        }
        (inserted, row) => (inserted, row.map_err(SqlError::of::<DB>)?),
    };
    match (inserted, row) {
        (Inserted::Yes, Some(row)) => Ok(Insertion::Inserted(row)),
        (Inserted::Yes, None) => Err(InsertError::NotFound),
        (Inserted::No | Inserted::Refused(_), Some(row)) => Ok(Insertion::Existing(row)),
        (Inserted::No, None) => Err(InsertError::NotSeen),
        (Inserted::Refused(error), None) => Err(unseen::<DB>(connection, error, constraint).await),
    }
}

enum Inserted {
    Yes,
    /// It keeps its conflict to itself, as `ON CONFLICT DO NOTHING` does.
    No,
    Refused(sqlx::Error),
}

fn inserted<DB: Database>(rows: sqlx::Result<u64>) -> Result<Inserted, SqlError> {
    match rows {
        Ok(0) => Ok(Inserted::No),
        Ok(_) => Ok(Inserted::Yes),
        Err(error) if is_unique_violation(&error) => Ok(Inserted::Refused(error)),
        Err(error) => Err(SqlError::of::<DB>(error)),
    }
}

fn is_unique_violation(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Nothing was found, although something is in the way.
async fn unseen<DB: Database>(
    connection: &mut DB::Connection,
    source: sqlx::Error,
    name: &str,
) -> InsertError {
    let error = source.as_database_error();
    let Some((error, violated)) =
        error.and_then(|error| Some((error, Of::<DB>::constraint(error)?)))
    else {
        return SqlError::of::<DB>(source).into();
    };
    match Of::<DB>::is_named(connection, error, name).await {
        Ok(true) => InsertError::NotSeen,
        Ok(false) => InsertError::Conflict {
            constraint: violated.to_owned(),
            source,
        },
        Err(error) => SqlError::of::<DB>(error).into(),
    }
}
