//! What a database's errors mean here. They are told apart by code, never by text.

use std::io;

use sqlx::error::DatabaseError;

use crate::error::{StoreError, StoreErrorKind};

/// What an error says of the call that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres")),
    allow(dead_code, reason = "some errors only a server has")
)]
pub(super) enum Class {
    /// Two transactions were in each other's way and this one was rolled back: again at once.
    Conflict,
    /// Two transactions waited for each other and this one was rolled back: again at once.
    Deadlock,
    /// Somebody's transaction kept the row for too long.
    Locked,
    /// Other calls have all connections.
    Busy,
    /// The statement took too long, or somebody cancelled it. That says nothing of the database, but
    /// it may have waited for a lock.
    Stopped,
    /// No connection, or no answer.
    Unavailable,
    /// The database can not take the write now.
    Refused,
    /// The same, of this connection alone: its server only reads, or what runs on it may only read.
    ReadOnly,
    /// The session was idle, or its transaction open, for longer than the server lets it. In one of the
    /// store this process stood still; in another one it is what is done there.
    Overslept,
    /// It lets nobody of this name in, whatever they would say. Somebody has to change the set-up.
    NotLetIn,
    /// What was prepared on this connection is not there: between us and the server stands somebody
    /// who gives each transaction another session.
    Unprepared,
    /// Somebody has to change the set-up.
    Misconfigured,
    /// The rest.
    Protocol,
}

/// An error of a call, classed.
#[derive(Debug)]
pub(super) struct Fault {
    class: Class,
    error: sqlx::Error,
    is_undone: bool,
}

impl Fault {
    /// `of_database` knows the codes of one database.
    pub(super) fn new(
        error: sqlx::Error,
        of_database: impl Fn(&dyn DatabaseError) -> Class,
    ) -> Self {
        let class = class(&error, of_database);
        let is_undone = match &error {
            // Other errors may also answer a COMMIT that was done: a server that is shut
            // down while it waits for its replicas says so by one.
            sqlx::Error::Database(_) => matches!(class, Class::Conflict | Class::Deadlock),
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => true,
            _ => class == Class::Misconfigured,
        };
        Self {
            class,
            error,
            is_undone,
        }
    }

    /// Somebody else has what the call needs, for longer than it can wait.
    pub(super) fn locked() -> Self {
        let why = "no lock on the record in time";
        Self {
            class: Class::Locked,
            error: io::Error::new(io::ErrorKind::TimedOut, why).into(),
            is_undone: true,
        }
    }

    /// There is no connection for the call, though the database is there.
    pub(super) fn busy(place: &str) -> Self {
        let why =
            format!("no connection to {place} in time: all that the pool may have are in use");
        Self {
            class: Class::Busy,
            error: io::Error::new(io::ErrorKind::TimedOut, why).into(),
            is_undone: true,
        }
    }

    /// Met before the transaction was asked to commit: nothing of it stays.
    pub(super) fn before_commit(mut self) -> Self {
        self.is_undone = true;
        self
    }

    /// Met in the caller's transaction.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(super) fn of_the_caller(mut self) -> Self {
        if self.class == Class::Overslept {
            self.class = Class::Protocol;
        }
        self.before_commit()
    }

    /// Met before anything was asked: what nobody understands says nothing of the call, and there is no
    /// connection. So do poolers speak, by codes of their own, that have none.
    pub(super) fn while_connecting(mut self) -> Self {
        if self.class == Class::Protocol {
            self.class = Class::Unavailable;
        }
        self
    }

    /// Whether somebody has what the call needs.
    pub(super) fn is_locked(&self) -> bool {
        self.class == Class::Locked
    }

    /// Whether the same call may do better in a moment.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self.class, Class::Conflict | Class::Deadlock)
    }
}

/// `of_database` knows the codes of one database.
pub(super) fn class(
    error: &sqlx::Error,
    of_database: impl Fn(&dyn DatabaseError) -> Class,
) -> Class {
    match error {
        sqlx::Error::Database(error) => of_database(&**error),
        sqlx::Error::Configuration(_) | sqlx::Error::InvalidArgument(_) => Class::Misconfigured,
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Class::Unavailable,
        _ => Class::Protocol,
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        let (kind, advice) = match fault.class {
            Class::Conflict => (StoreErrorKind::Conflict, ": transactions in conflict"),
            Class::Deadlock => (StoreErrorKind::Conflict, ": deadlock of transactions"),
            Class::Locked => (StoreErrorKind::Conflict, ": locked by another transaction"),
            Class::Busy => (StoreErrorKind::Conflict, ""),
            Class::Stopped => (
                StoreErrorKind::Conflict,
                ": stopped before its end, perhaps while it waited for another transaction",
            ),
            Class::Unavailable | Class::Overslept => (StoreErrorKind::Unavailable, ""),
            Class::Refused | Class::ReadOnly => (StoreErrorKind::Refused, ""),
            Class::NotLetIn => (StoreErrorKind::Misconfigured, ""),
            Class::Unprepared => (
                StoreErrorKind::Misconfigured,
                " (does a pooler that shares sessions keep prepared statements, as PgBouncer does from \
                 1.21 on with max_prepared_statements?)",
            ),
            Class::Misconfigured => (
                StoreErrorKind::Misconfigured,
                " (has migrate() been run, by a user with the rights to use its tables?)",
            ),
            Class::Protocol => (StoreErrorKind::Protocol, ""),
        };
        let error = Self::new(kind, format!("sql: {}{advice}", fault.error));
        let error = error.with_source(fault.error);
        if fault.is_undone {
            error.before_sending()
        } else {
            error
        }
    }
}
