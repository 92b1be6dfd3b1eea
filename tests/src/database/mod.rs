//! Databases with records in them, and what somebody else does to them.
#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "for tests only, where what does not work panics"
)]

pub mod locked;
pub mod mariadb;
mod postgres;
pub mod rows;
pub mod scenes;

pub use mariadb::OnMariaDb;
pub use postgres::OnPostgres;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_core::StoreError;
use idem_core::conformance::Harness;
use idem_core::store::{Store, StoreKey};
use sqlx::{AssertSqlSafe, SqliteConnection};

/// A database of a server that all tests of a process share.
pub trait Database: Harness<Store: Store + Clone> + Sized {
    /// A connection of somebody else.
    type Aside: Aside;

    /// Counts the sessions of this database that wait for a lock.
    const WAITING: &str;
    /// Counts the sessions of this database that have a transaction open.
    const OPEN: &str;
    /// Begins a transaction that locks no more than it names.
    const BEGIN: &str;
    /// The hash of another key.
    const OTHER_HASH: &str;
    /// How long nobody may ask for new figures about sessions.
    const BETWEEN_LOOKS: Duration;

    /// A database of its own, without tables.
    fn empty() -> impl Future<Output = Self> + Send;

    /// Where its server is.
    fn address(&self) -> SocketAddr;

    /// Its stores find the server at this port of loopback.
    #[must_use]
    fn behind(self, port: u16) -> Self;

    /// A store that has not looked for its tables yet.
    fn unprepared(&self) -> impl Future<Output = Self::Store> + Send;

    /// A connection, straight to the server.
    fn aside(&self) -> impl Future<Output = Self::Aside> + Send;

    /// The store with another limit for a call.
    #[must_use]
    fn limited(store: &Self::Store, limit: Duration) -> Self::Store;

    /// Makes the tables.
    fn migrate(store: &Self::Store) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes what is over.
    fn purge(store: &Self::Store, batch: u32) -> impl Future<Output = u64> + Send;
}

/// A connection of somebody else.
pub trait Aside: Send {
    /// Runs statements.
    fn run(&mut self, sql: &str) -> impl Future<Output = ()> + Send {
        async move { self.try_run(sql).await.unwrap() }
    }

    /// Runs statements that may be refused.
    fn try_run(&mut self, sql: &str) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Asks for one number.
    fn count(&mut self, sql: &str) -> impl Future<Output = i64> + Send;
}

impl Aside for SqliteConnection {
    async fn try_run(&mut self, sql: &str) -> sqlx::Result<()> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        sql.execute(self).await.map(drop)
    }

    async fn count(&mut self, sql: &str) -> i64 {
        let sql = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        sql.fetch_one(self).await.unwrap()
    }
}

/// How many connections a store opens where every law has one of its own, and where many do.
const MANY: u32 = 8;
const FEW: u32 = 4;

/// How long a call may take: long, for much runs at once.
const LIMIT: Duration = Duration::from_secs(5);

fn unused_name() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("made_{}", MADE.fetch_add(1, Ordering::Relaxed))
}

fn type_of(key: &StoreKey) -> String {
    format!("{}:{}", key.namespace(), key.prefix())
}
