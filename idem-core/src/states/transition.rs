//! The change of one row to another state, by an event.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use sqlx::{Pool, Transaction};

use super::change::{Change, Request, fits};
use super::names::{Names, STATUS};
use super::statements::{Statements, definition};
use super::{Answer, States, TransitionError};
use crate::sql::driver::{Driver, Of};
use crate::sql::{Database, SqlError};

/// Changes the state of rows of one table, each by an event that counts once.
///
/// The row has an id, a status (a number: the state's [`code`](States::code)) and a version (a
/// number that grows by one with each change). Which event changed which row is kept in a second
/// table, the log, written in the same transaction: so a redelivered event is known, whatever
/// happened to the row since, and another event that wants the same is not taken for it.
///
/// # Examples
/// ```no_run
/// use idem_core::States;
/// use idem_core::states::{Answer, Transition};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
/// enum OrderStatus {
///     #[state(code = 1, to(Paid))]
///     Created,
///     #[state(code = 2)]
///     Paid,
/// }
///
/// # #[cfg(feature = "postgres")]
/// async fn paid(pool: &sqlx::PgPool, order: i64, payment: &str) -> anyhow::Result<()> {
///     let orders = Transition::<OrderStatus>::on("orders");
///     orders.migrate(pool).await?; // once, at the start
///
///     let mut tx = pool.begin().await?;
///     match orders.apply(&mut tx, order, OrderStatus::Paid, payment, None).await? {
///         Answer::Applied { .. } => { /* what else belongs to it, in `tx` */ }
///         Answer::AlreadyThere { .. } => {} // redelivered
///         refused => anyhow::bail!("payment {payment} of order {order}: {refused:?}"),
///     }
///     tx.commit().await?;
///     Ok(())
/// }
/// ```
pub struct Transition<S> {
    names: Names,
    states: PhantomData<fn() -> S>,
}

impl<S: States> Transition<S> {
    /// Of the rows of `table` (or `schema.table`), with the columns `id`, `status` and `version`
    /// and the log `state_event`, unless said otherwise. Names are taken to the letter, also in
    /// PostgreSQL: `orders`, not `Orders`, is what `CREATE TABLE Orders` makes there. The log keeps
    /// events by this name as it is written here: under `shop.orders`, those of `orders` are unknown.
    #[must_use]
    pub fn on(table: impl Into<Cow<'static, str>>) -> Self {
        Self {
            names: Names {
                table: table.into(),
                log: "state_event".into(),
                id: "id".into(),
                status: STATUS.into(),
                version: "version".into(),
            },
            states: PhantomData,
        }
    }

    /// The column of the id, which is unique: of any type that is bound by sqlx and can be cast to
    /// text. In SQLite also of bytes, such as a UUID is bound as: the log has them as `X'…'`, at most
    /// 126 of them.
    #[must_use]
    pub fn id_column(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.names.id = name.into();
        self
    }

    /// The column of the status, of any type of whole numbers.
    ///
    /// A table may have several, each with states of its own: one event can change them all. The log
    /// keeps the events of a column that is not called `status` apart, under `table:column`, as it is
    /// written here.
    #[must_use]
    pub fn status_column(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.names.status = name.into();
        self
    }

    /// The column of the version, of any type of whole numbers.
    #[must_use]
    pub fn version_column(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.names.version = name.into();
        self
    }

    /// The table of the events. Several tables of rows may share one.
    #[must_use]
    pub fn log(mut self, table: impl Into<Cow<'static, str>>) -> Self {
        self.names.log = table.into();
        self
    }

    /// Creates the log where it is missing. Two processes may do so at once.
    ///
    /// Keep its rows for as long as an event can be redelivered.
    ///
    /// # Errors
    /// A name that is not usable, missing rights, or no answer. It is safe to be called again.
    pub async fn migrate<DB: Database>(&self, pool: &Pool<DB>) -> Result<(), TransitionError> {
        let defined = Of::<DB>::define(pool, self.definition::<DB>()?).await;
        Ok(defined.map_err(SqlError::of::<DB>)?)
    }

    /// The statements of [`migrate`](Self::migrate), for migrations of your own.
    ///
    /// # Errors
    /// A name that is not usable.
    pub fn definition<DB: Database>(&self) -> Result<String, TransitionError> {
        definition::<DB>(&self.names)
    }

    /// Changes the row of this id to the state `to`, because of `event`, in the transaction of the
    /// caller, which commits it or not.
    ///
    /// `event` is what is the same in each redelivery and new for each new cause: the payment's
    /// id, not the delivery's. `expected` is the version that the caller has seen, if what it
    /// decided depends on it.
    ///
    /// The row is locked, then everything is decided by what is read: in this order, whether the
    /// row is there, whether the log knows the event, whether another event has brought the row
    /// there, the version, and whether the states allow the change. Any isolation will do.
    ///
    /// # Errors
    /// No statement fails in the course of an answer, so the transaction can go on after each of
    /// the five. After an error it has to be rolled back;
    /// [`is_retryable`](TransitionError::is_retryable) says whether it may be run again: at
    /// REPEATABLE READ and SERIALIZABLE that is part of normal life.
    ///
    /// # Cancel safety
    /// Dropped in the middle, half of the change may stand in the transaction: roll it back, which
    /// is what dropping that does. Committed, it is an event without its change, and a redelivery is
    /// told [`Answer::AlreadyThere`].
    ///
    /// Of sqlx's own calls on MySQL, one that is dropped while it prepares a statement, as it does once on
    /// each connection, leaves the connection out of step. Dropping the transaction still rolls it
    /// back, but the pool loses the connection, and a `rollback()` may not return. Where the caller can
    /// go away, run all from the `begin()` to the commit in a task of its own (`tokio::spawn`).
    ///
    /// # Concurrent calls on the same key
    /// They wait for the transaction of the one before. In SQLite there is one writer in the file,
    /// who is waited for by the pool's `busy_timeout`.
    pub async fn apply<DB, I>(
        &self,
        tx: &mut Transaction<'_, DB>,
        id: I,
        to: S,
        event: &str,
        expected: Option<i64>,
    ) -> Result<Answer<S>, TransitionError>
    where
        DB: Database,
        I: for<'q> sqlx::Encode<'q, DB> + sqlx::Type<DB> + Send + Sync,
    {
        fits("the id of the event", event.as_bytes())?;
        let entity = self.names.entity();
        let change = Change::<DB, S> {
            connection: &mut **tx,
            statements: Statements::new::<DB>(&self.names)?,
            request: Request {
                entity: &entity,
                log: &self.names.log,
                event,
                to,
                expected,
            },
        };
        change.make(&id).await
    }
}

impl<S> Clone for Transition<S> {
    fn clone(&self) -> Self {
        Self {
            names: self.names.clone(),
            states: PhantomData,
        }
    }
}

impl<S> fmt::Debug for Transition<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transition").field(&self.names).finish()
    }
}
