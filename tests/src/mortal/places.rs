//! Databases of their own, on one server of each kind that the tests of a process share.
#![allow(
    clippy::missing_panics_doc,
    reason = "for tests only, where what does not work panics"
)]

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, MySql, Pool, Postgres, Sqlite};
use tempfile::TempDir;

use super::base::Base;
use crate::mariadb::MariaDbServer;
use crate::postgres::PostgresServer;

static POSTGRES: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start().unwrap());
static MARIADB: LazyLock<MariaDbServer> =
    LazyLock::new(|| MariaDbServer::start_with(&["--max-connections=500"]).unwrap());

/// A database with its tables.
#[derive(Debug)]
pub struct Place<D: Base> {
    /// Where it is.
    pub url: String,
    /// Connections to it.
    pub pool: Pool<D>,
    /// What goes with it: the folder of a file.
    pub keep: Option<TempDir>,
}

impl<D: Base> Place<D> {
    async fn at(url: String, keep: Option<TempDir>) -> Self {
        let pool = D::open(&url).unwrap();
        D::lay_out(&pool).await.unwrap();
        Self { url, pool, keep }
    }
}

/// A kind of database of which one can be made.
pub trait Placed: Base {
    /// A new one.
    fn place() -> impl Future<Output = Place<Self>> + Send;
}

fn unused_name() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("made_{}", MADE.fetch_add(1, Ordering::Relaxed))
}

impl Placed for Postgres {
    async fn place() -> Place<Self> {
        let (url, name) = (POSTGRES.url(), unused_name());
        let admin = Self::open(&url).unwrap();
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        let create = sqlx::raw_sql(AssertSqlSafe(create)).execute(&admin).await;
        create.unwrap();
        let url = url.replace("/postgres?", &format!("/{name}?"));
        Place::at(url, None).await
    }
}

/// One whose transactions have this isolation, unless they say another one.
pub async fn postgres_at(level: &str) -> Place<Postgres> {
    let mut place = Postgres::place().await;
    place.url = format!(
        "{}&options[default_transaction_isolation]={}",
        place.url,
        level.replace(' ', "%20")
    );
    place.pool = Postgres::open(&place.url).unwrap();
    let taken = sqlx::query_scalar("SELECT current_setting('transaction_isolation')");
    let taken: String = taken.fetch_one(&place.pool).await.unwrap();
    assert_eq!(taken, level);
    place
}

impl Placed for MySql {
    async fn place() -> Place<Self> {
        let (url, name) = (MARIADB.url(), unused_name());
        let admin = Self::open(&url).unwrap();
        let create = sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")));
        create.execute(&admin).await.unwrap();
        let url = url.replace("/test?", &format!("/{name}?"));
        Place::at(url, None).await
    }
}

/// What a file of SQLite is put in order by, when whoever wrote to it has died.
#[derive(Debug, Clone, Copy)]
pub enum Journal {
    /// A log of what was written, which is read up to the last commit.
    WriteAhead,
    /// What stood there before, which the next one puts back.
    Rollback,
}

/// A file with this journal.
pub async fn sqlite_with(journal: Journal) -> Place<Sqlite> {
    let folder = tempfile::Builder::new().prefix("idem-sqlite-").tempdir();
    let folder = folder.unwrap();
    let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    let place = Place::at(url, Some(folder)).await;
    let (set, expected) = match journal {
        Journal::WriteAhead => ("PRAGMA journal_mode = WAL", "wal"),
        Journal::Rollback => ("PRAGMA journal_mode = DELETE", "delete"),
    };
    let mode: String = sqlx::query_scalar(set)
        .fetch_one(&place.pool)
        .await
        .unwrap();
    assert_eq!(mode, expected);
    place
}

/// Every second file has a write-ahead log, the others have a rollback journal.
impl Placed for Sqlite {
    async fn place() -> Place<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let is_even = MADE.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        sqlite_with(if is_even {
            Journal::WriteAhead
        } else {
            Journal::Rollback
        })
        .await
    }
}
