//! Why a transition gave no answer.

use std::borrow::Cow;

use crate::sql::SqlError;

/// Why a [`Transition`](super::Transition) gave no [`Answer`](super::Answer). Roll the transaction
/// back: part of the change may stand in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransitionError {
    /// A name of a table or column that is not usable. Nothing was sent.
    #[error(
        "`{name}` can not be the name of a table or column here: letters, digits and `_`, at most 63 bytes, for a table with `schema.` before it or without"
    )]
    InvalidName {
        /// As it was given.
        name: String,
    },
    /// An id that the log can not keep: blank, or too long. Nothing was written.
    #[error(
        "the log can not keep {what}: it has {length} bytes, and may have 1 to 255, not all blank"
    )]
    InvalidId {
        /// Which id.
        what: Cow<'static, str>,
        /// Its length in bytes.
        length: usize,
    },
    /// The row holds a code that none of the states has. Nothing was written.
    #[error("the row holds the status {code}, which none of the states has")]
    UnknownStatus {
        /// As read.
        code: i64,
    },
    /// More than one row has the id, or somebody changed what was locked: a trigger, or a writer
    /// who deletes from the log.
    #[error(
        "the transition would not change exactly one row: is the id unique, does a trigger interfere, were events deleted meanwhile?"
    )]
    NotOneRow,
    /// The table of the events is not there. Create it by
    /// [`migrate`](super::Transition::migrate), once.
    #[error(
        "the log of events `{log}` is not there; call `migrate()` of the transition once, at the start, or run its `definition()`"
    )]
    NoLog {
        /// The name of the table.
        log: String,
        /// What the database said.
        source: sqlx::Error,
    },
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

impl TransitionError {
    /// Whether the same transaction, run again from its begin, may do better.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Sql(error) if error.is_retryable())
    }
}
