//! What a database's errors ask of the caller.

use super::Database;
use super::driver::{Driver, Of, Trouble};

/// A statement that failed. The driver's own error is kept, with all that it knows.
///
/// The transaction in which it was met has to be rolled back; then
/// [`is_retryable`](Self::is_retryable) says whether the same one may do better.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// Transactions were in each other's way: a serialisation failure, a busy file. Roll back, and run
    /// the whole transaction again.
    #[error("transactions in conflict; roll back and run the transaction again")]
    Serialization {
        /// What the database said.
        source: sqlx::Error,
    },
    /// Transactions waited for each other, and this one was chosen to give way. Roll back, and run the
    /// whole transaction again; where it is met often, lock rows in one order.
    #[error("a deadlock; roll back and run the transaction again")]
    Deadlock {
        /// What the database said.
        source: sqlx::Error,
    },
    /// Somebody's transaction kept a row locked for longer than this one waits. Roll back, and run
    /// the whole transaction again.
    #[error("a row was locked for too long; roll back and run the transaction again")]
    LockTimeout {
        /// What the database said.
        source: sqlx::Error,
    },
    /// The database does not take statements now, whatever they say: no connection, not let in, shut
    /// down, read-only, full. Roll back, and try again when it does. To a consumer of messages this is
    /// [`Meaning::Away`](crate::consumer::Meaning::Away).
    #[error("the database does not take statements now")]
    Away {
        /// What the database or its driver said.
        source: sqlx::Error,
    },
    /// Anything else: a violated constraint, a table that is not there, a statement that took longer
    /// than it may (`statement_timeout`, `max_statement_time`) or was cancelled.
    #[error("the statement failed")]
    Database {
        /// What the database or its driver said.
        source: sqlx::Error,
    },
}

impl SqlError {
    /// What an error of a statement of your own asks of you.
    #[must_use]
    pub fn of<DB: Database>(source: sqlx::Error) -> Self {
        match Of::<DB>::trouble(&source) {
            Trouble::Serialization => Self::Serialization { source },
            Trouble::Deadlock => Self::Deadlock { source },
            Trouble::Locked => Self::LockTimeout { source },
            Trouble::Away => Self::Away { source },
            Trouble::Other => Self::Database { source },
        }
    }

    /// Whether the same transaction, run again from its begin, may do better.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Serialization { .. } | Self::Deadlock { .. } | Self::LockTimeout { .. }
        )
    }
}
