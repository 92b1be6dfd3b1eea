//! A connection with a transaction of ours on it.

use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Database, Executor};

/// A connection that goes back to its pool only by [`Held::end`]. In any other case, which is an
/// error, a time-out or a caller that went away, nobody knows in what state it is, so it is closed
/// and the server rolls back. (A transaction of sqlx can go back to the pool open if its `begin`
/// is dropped at the wrong moment.)
#[derive(Debug)]
pub(super) struct Held<D: Database> {
    connection: Option<PoolConnection<D>>,
}

impl<D> Held<D>
where
    D: Database,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    /// Runs `begin`, one or more statements.
    pub(super) async fn begin(connection: PoolConnection<D>, begin: String) -> sqlx::Result<Self> {
        let mut held = Self {
            connection: Some(connection),
        };
        let begin = sqlx::raw_sql(AssertSqlSafe(begin));
        begin.execute(held.connection()?).await?;
        Ok(held)
    }

    pub(super) fn connection(&mut self) -> sqlx::Result<&mut D::Connection> {
        self.connection
            .as_deref_mut()
            .ok_or(sqlx::Error::WorkerCrashed)
    }

    /// Runs `end`, and gives the connection back.
    pub(super) async fn end(mut self, end: &'static str) -> sqlx::Result<()> {
        sqlx::raw_sql(end).execute(self.connection()?).await?;
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
