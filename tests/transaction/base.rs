//! What the scenes need of a database.

use std::future::Future;
use std::time::Duration;

use idem_core::store::Store;
use idem_core::transaction::Database;
use idem_core::{Idempotency, MemoryStore};
use idem_tests::body::Bodies;
use sqlx::{Pool, Transaction};

/// A database with the table of records, and a table `effect` of numbers.
pub(crate) trait Base: Database {
    /// Whether even a call without patience waits, so that an answer does not tell who has waited.
    const ALWAYS_WAITS: bool = false;

    /// How soon a call without patience is told that somebody else has its key.
    const IS_TOLD_WITHIN: Duration = Duration::from_secs(1);

    type Store: Store;

    /// The store of its records.
    fn store(pool: &Pool<Self>) -> Self::Store;

    /// A new one.
    fn place() -> impl Future<Output = Place<Self>> + Send;

    /// A transaction as its users are told to begin it.
    fn begin(pool: &Pool<Self>) -> impl Future<Output = Transaction<'static, Self>> + Send;

    /// An effect in a transaction.
    fn add(
        connection: &mut Self::Connection,
        number: i64,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Every effect that was committed, in order.
    fn effects(pool: &Pool<Self>) -> impl Future<Output = Vec<i64>> + Send;

    /// Deletes every effect.
    fn clear(pool: &Pool<Self>) -> impl Future<Output = ()> + Send;

    /// How many statements wait for somebody's lock.
    fn waiting(pool: &Pool<Self>) -> impl Future<Output = i64> + Send;

    /// How long a session waits for locks, as it says itself.
    fn patience(connection: &mut Self::Connection) -> impl Future<Output = String> + Send;
}

/// A database, an engine, and how often bodies have run.
pub(crate) struct Place<D: Base> {
    pub(crate) pool: Pool<D>,
    pub(crate) idem: Idempotency,
    /// An engine whose records, in lease mode, are in the same table.
    pub(crate) leases: Idempotency,
    pub(crate) bodies: Bodies,
    /// What goes with the place: the folder of a file.
    pub(crate) _keep: Option<tempfile::TempDir>,
}

impl<D: Base> Place<D> {
    /// The engine's own store is never asked: a fresh one in memory knows nothing.
    pub(crate) fn new(pool: Pool<D>, leases: Idempotency, keep: Option<tempfile::TempDir>) -> Self {
        let idem = Idempotency::builder(MemoryStore::new()).build();
        Self {
            pool,
            idem: idem.unwrap(),
            leases,
            bodies: Bodies::default(),
            _keep: keep,
        }
    }

    pub(crate) async fn begin(&self) -> Transaction<'static, D> {
        D::begin(&self.pool).await
    }

    pub(crate) async fn effects(&self) -> Vec<i64> {
        D::effects(&self.pool).await
    }
}
