//! A connection that one call has.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use sqlx::Database;
use sqlx::pool::PoolConnection;
use tokio::sync::OwnedSemaphorePermit;

use super::dialect::Dialect;
use super::fault::Class;

/// When a database was heard last.
#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<Option<Instant>>);

impl Heard {
    pub(super) fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(super) fn is_within(&self, time: Duration) -> bool {
        let heard = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.is_some_and(|heard| heard.elapsed() < time)
    }
}

/// The turn of a call, and what tells its pool that it has a connection.
pub(super) type Turn = (OwnedSemaphorePermit, Weak<()>);

/// A connection that goes back to its pool only where it is known in what state it is. In any other
/// case, which is a failure of the wire, or work that was not carried to its end, it is closed, and
/// the server rolls back what it holds. So is one that only reads: after a switch-over, a new one may
/// lead to the server that writes. (A transaction of sqlx can go back to the pool open if its
/// `begin` is dropped at the wrong moment, and a connection to MySQL in the middle of an answer.)
#[derive(Debug)]
pub(super) struct Held<D: Database> {
    connection: Option<PoolConnection<D>>,
    heard: Arc<Heard>,
    /// For as long as it has the connection.
    _turn: Turn,
}

impl<D: Dialect> Held<D> {
    pub(super) fn new(connection: PoolConnection<D>, heard: Arc<Heard>, turn: Turn) -> Self {
        Self {
            connection: Some(connection),
            heard,
            _turn: turn,
        }
    }

    pub(super) fn connection(&mut self) -> sqlx::Result<&mut D::Connection> {
        self.connection
            .as_deref_mut()
            .ok_or(sqlx::Error::WorkerCrashed)
    }

    /// The connection, for somebody who knows how to end what is on it.
    #[cfg(feature = "sqlite")]
    pub(super) fn into_inner(mut self) -> sqlx::Result<PoolConnection<D>> {
        self.connection.take().ok_or(sqlx::Error::WorkerCrashed)
    }

    /// Gives the connection back, if the last statement on it, which left no transaction open, has
    /// had its whole answer.
    pub(super) fn after<T>(mut self, answer: sqlx::Result<T>) -> sqlx::Result<T> {
        let goes_back = match &answer {
            Ok(_) => true,
            Err(sqlx::Error::Database(error)) => D::class(&**error) != Class::ReadOnly,
            Err(_) => return answer,
        };
        self.heard.now();
        if goes_back {
            drop(self.connection.take());
        }
        answer
    }
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl<D> Held<D>
where
    D: Dialect,
    for<'c> &'c mut D::Connection: sqlx::Executor<'c, Database = D>,
{
    /// Runs `begin`, one or more statements. Where the database refuses one of them, `undo` takes back
    /// what those before it did, also to the session, and the connection goes back.
    pub(super) async fn begin(mut self, begin: String, undo: &'static str) -> sqlx::Result<Self> {
        let begin = sqlx::raw_sql(sqlx::AssertSqlSafe(begin));
        match begin.execute(self.connection()?).await {
            Ok(_) => Ok(self),
            Err(error) => {
                if let sqlx::Error::Database(refusal) = &error {
                    self.heard.now();
                    if D::class(&**refusal) != Class::ReadOnly {
                        // What it says is of less use than why this is needed.
                        let _ = self.end(undo).await;
                    }
                }
                Err(error)
            }
        }
    }

    /// Runs `end`, and gives the connection back.
    pub(super) async fn end(mut self, end: &'static str) -> sqlx::Result<()> {
        sqlx::raw_sql(end).execute(self.connection()?).await?;
        self.heard.now();
        drop(self.connection.take());
        Ok(())
    }
}

impl<D: Database> Drop for Held<D> {
    fn drop(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.close_on_drop();
        }
    }
}
