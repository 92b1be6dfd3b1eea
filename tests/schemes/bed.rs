//! What a scene needs of a database.

use std::future::Future;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use idem_core::sql::{Database, InsertError, Insertion, insert_or_get};
use idem_core::states::{Answer, Transition, TransitionError};
use idem_tests::elsewhere::server;
use idem_tests::mariadb::MariaDbServer;
use idem_tests::postgres::PostgresServer;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, MySql, Pool, Postgres, Sqlite, Transaction};
use tempfile::TempDir;

use crate::transition::Order;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    ReadCommitted,
    RepeatableRead,
    /// The same where MariaDB refuses what others have changed since (`innodb_snapshot_isolation`),
    /// as it does by itself from 11.6.2 on.
    OneSnapshot,
    Serializable,
}

impl Level {
    fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead | Self::OneSnapshot => "repeatable read",
            Self::Serializable => "serializable",
        }
    }
}

/// A database of its own, whose transactions have this isolation.
pub(crate) struct Fresh<DB: sqlx::Database> {
    pub(crate) pool: Pool<DB>,
    pub(crate) level: Level,
}

impl<DB: sqlx::Database> Clone for Fresh<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            level: self.level,
        }
    }
}

pub(crate) type Answered = Result<Answer<Order>, TransitionError>;

/// What is asked of a transition.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) to: Order,
    pub(crate) event: String,
    pub(crate) expected: Option<i64>,
}

pub(crate) type Billed = Result<Insertion<(i64, String)>, InsertError>;

/// What is inserted, and which request is asked for then.
#[derive(Debug, Clone)]
pub(crate) struct Bill {
    pub(crate) request: String,
    pub(crate) shop: i64,
    pub(crate) number: String,
    pub(crate) asked: String,
    pub(crate) is_silent: bool,
}

pub(crate) trait Bed: Database {
    /// Whether a transaction that has read once is shut out of what others change afterwards: it
    /// can only begin again.
    const HAS_ONE_SNAPSHOT: fn(Level) -> bool;

    /// Whether transactions of different rows are never in each other's way.
    const KEEPS_ROWS_APART: fn(Level) -> bool;

    /// Makes a session wait for locks only briefly.
    const IMPATIENT: &str;

    /// Numbers of the session that the connections of a pool have in common.
    const SETTINGS: &str;

    /// Whether a connection is in step when a call was dropped that prepared a statement on it.
    const PREPARES_IN_STEP: bool;

    /// The type of an id that the database makes.
    const GROWING: &str;

    /// The names of a unique index, here of `bills_by_request`.
    const BY_REQUEST: &[&str];

    /// The names of a unique index of two columns, and how an error may name it.
    const BY_NUMBER: &[&str];

    /// Statements that make the server speak other languages, if it can.
    const TONGUES: &[&str];

    /// Of a request, a shop and a number.
    const INSERT: &str;

    /// The same, which does not fail on a row that is there.
    const INSERT_SILENTLY: &str;

    /// The id and the number, by the request.
    const SELECT: &str;

    /// A text of up to 100 characters that is a key, with the database's default collation.
    const TEXT: &str;

    /// The type of a few bytes that are a key, and how a literal of them begins.
    const BYTES: [&str; 2];

    fn fresh(level: Level) -> impl Future<Output = Fresh<Self>> + Send;

    fn execute(pool: &Pool<Self>, sql: &str) -> impl Future<Output = sqlx::Result<()>> + Send;

    fn begin(pool: &Pool<Self>) -> impl Future<Output = Transaction<'static, Self>> + Send;

    fn commit(tx: Transaction<'static, Self>) -> impl Future<Output = sqlx::Result<()>> + Send;

    fn within(
        tx: &mut Transaction<'static, Self>,
        sql: &str,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Whole numbers of one row.
    fn numbers(pool: &Pool<Self>, sql: &str) -> impl Future<Output = Vec<i64>> + Send;

    fn bill(
        connection: &mut Self::Connection,
        constraint: &str,
        bill: &Bill,
    ) -> impl Future<Output = Billed> + Send;

    fn apply(
        orders: &Transition<Order>,
        tx: &mut Transaction<'static, Self>,
        id: i64,
        ask: &Ask,
    ) -> impl Future<Output = Answered> + Send;

    fn apply_text(
        orders: &Transition<Order>,
        tx: &mut Transaction<'static, Self>,
        id: &str,
        ask: &Ask,
    ) -> impl Future<Output = Answered> + Send;

    fn apply_bytes(
        orders: &Transition<Order>,
        tx: &mut Transaction<'static, Self>,
        id: &[u8],
        ask: &Ask,
    ) -> impl Future<Output = Answered> + Send;
}

macro_rules! bed {
    ($database:ty, $fresh:path; $($constants:tt)*) => {
        impl Bed for $database {
            $($constants)*

            async fn fresh(level: Level) -> Fresh<Self> {
                let pool = $fresh(level).await;
                Fresh { pool, level }
            }

            async fn execute(pool: &Pool<Self>, sql: &str) -> sqlx::Result<()> {
                let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
                sqlx::Executor::execute(pool, sql).await.map(drop)
            }

            async fn begin(pool: &Pool<Self>) -> Transaction<'static, Self> {
                pool.begin().await.unwrap()
            }

            async fn commit(tx: Transaction<'static, Self>) -> sqlx::Result<()> {
                tx.commit().await
            }

            async fn within(tx: &mut Transaction<'static, Self>, sql: &str) -> sqlx::Result<()> {
                let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
                sql.execute(&mut **tx).await.map(drop)
            }

            async fn numbers(pool: &Pool<Self>, sql: &str) -> Vec<i64> {
                use sqlx::Row;
                let row = sqlx::query(AssertSqlSafe(sql.to_owned()));
                let row = row.fetch_one(pool).await.unwrap();
                (0..row.len()).map(|at| row.get(at)).collect()
            }

            async fn bill(
                connection: &mut Self::Connection,
                constraint: &str,
                bill: &Bill,
            ) -> Billed {
                let insert = if bill.is_silent {
                    Self::INSERT_SILENTLY
                } else {
                    Self::INSERT
                };
                let insert = sqlx::query(insert)
                    .bind(&bill.request)
                    .bind(bill.shop)
                    .bind(&bill.number);
                let select = sqlx::query_as(Self::SELECT).bind(&bill.asked);
                insert_or_get(connection, constraint, insert, select).await
            }

            async fn apply(
                orders: &Transition<Order>,
                tx: &mut Transaction<'static, Self>,
                id: i64,
                ask: &Ask,
            ) -> Answered {
                orders.apply(tx, id, ask.to, &ask.event, ask.expected).await
            }

            async fn apply_text(
                orders: &Transition<Order>,
                tx: &mut Transaction<'static, Self>,
                id: &str,
                ask: &Ask,
            ) -> Answered {
                orders.apply(tx, id, ask.to, &ask.event, ask.expected).await
            }

            async fn apply_bytes(
                orders: &Transition<Order>,
                tx: &mut Transaction<'static, Self>,
                id: &[u8],
                ask: &Ask,
            ) -> Answered {
                orders.apply(tx, id, ask.to, &ask.event, ask.expected).await
            }
        }
    };
}

bed! {
    Postgres, postgres;
    const TEXT: &str = "VARCHAR(100)";
    const BYTES: [&str; 2] = ["BYTEA", "'\\x"];
    const GROWING: &str = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY";
    const IMPATIENT: &str = "SET lock_timeout = 100";
    const SETTINGS: &str = "SELECT count(*) FROM pg_settings WHERE source = 'session'";
    const PREPARES_IN_STEP: bool = true;
    const HAS_ONE_SNAPSHOT: fn(Level) -> bool = |level| level != Level::ReadCommitted;
    const KEEPS_ROWS_APART: fn(Level) -> bool = |level| level != Level::Serializable;
    const BY_REQUEST: &[&str] = &["bills_by_request"];
    const BY_NUMBER: &[&str] = &["bills_by_number"];
    const TONGUES: &[&str] = &["SELECT 1"];
    const INSERT: &str = "INSERT INTO bills (request_id, shop, number) VALUES ($1, $2, $3)";
    const INSERT_SILENTLY: &str =
        "INSERT INTO bills (request_id, shop, number) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    const SELECT: &str = "SELECT id, number FROM bills WHERE request_id = $1";
}

bed! {
    MySql, mariadb;
    const TEXT: &str = "VARCHAR(100)";
    const BYTES: [&str; 2] = ["VARBINARY(16)", "X'"];
    const GROWING: &str = "BIGINT AUTO_INCREMENT PRIMARY KEY";
    const IMPATIENT: &str = "SET SESSION innodb_lock_wait_timeout = 1";
    const SETTINGS: &str = "SELECT CAST(@@SESSION.innodb_lock_wait_timeout AS SIGNED), \
         CAST(@@SESSION.autocommit AS SIGNED)";
    const PREPARES_IN_STEP: bool = false;
    const HAS_ONE_SNAPSHOT: fn(Level) -> bool = |level| level == Level::OneSnapshot;
    const KEEPS_ROWS_APART: fn(Level) -> bool = |level| level != Level::Serializable;
    const BY_REQUEST: &[&str] = &["bills_by_request"];
    const BY_NUMBER: &[&str] = &["bills_by_number"];
    const TONGUES: &[&str] = &[
        "SET lc_messages = 'de_DE'",
        "SET lc_messages = 'fr_FR'",
        "SET lc_messages = 'hu_HU'",
        "SET lc_messages = 'ja_JP'",
        "SET lc_messages = 'ru_RU'",
        "SET lc_messages = 'sk_SK'",
        "SET lc_messages = 'zh_CN'",
        "SET lc_messages = 'en_US'",
    ];
    const INSERT: &str = "INSERT INTO bills (request_id, shop, number) VALUES (?, ?, ?)";
    const INSERT_SILENTLY: &str =
        "INSERT IGNORE INTO bills (request_id, shop, number) VALUES (?, ?, ?)";
    // What a statement may end in.
    const SELECT: &str = "SELECT id, number FROM bills WHERE request_id = ? ; ";
}

bed! {
    Sqlite, sqlite;
    const TEXT: &str = "TEXT";
    const BYTES: [&str; 2] = ["BLOB", "X'"];
    const GROWING: &str = "INTEGER PRIMARY KEY";
    const IMPATIENT: &str = "PRAGMA busy_timeout = 50";
    const SETTINGS: &str = "PRAGMA busy_timeout";
    const PREPARES_IN_STEP: bool = true;
    const HAS_ONE_SNAPSHOT: fn(Level) -> bool = |_| true;
    const KEEPS_ROWS_APART: fn(Level) -> bool = |_| true;
    const BY_REQUEST: &[&str] = &["bills_by_request", "bills.request_id"];
    const BY_NUMBER: &[&str] = &["bills_by_number", "bills.shop, bills.number"];
    const TONGUES: &[&str] = &["SELECT 1"];
    const INSERT: &str = "INSERT INTO bills (request_id, shop, number) VALUES (?, ?, ?)";
    const INSERT_SILENTLY: &str =
        "INSERT INTO bills (request_id, shop, number) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    const SELECT: &str = "SELECT id, number FROM bills WHERE request_id = ?";
}

static MADE: AtomicU32 = AtomicU32::new(0);

fn name() -> String {
    format!("made_{}", MADE.fetch_add(1, Ordering::Relaxed))
}

async fn postgres(level: Level) -> Pool<Postgres> {
    static SERVER: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start().unwrap());
    let options = PgConnectOptions::from_str(&server(|| SERVER.url())).unwrap();
    let admin = PgPoolOptions::new().max_connections(1);
    let admin = admin.connect_with(options.clone()).await.unwrap();
    let name = name();
    let create = format!("CREATE DATABASE {name} TEMPLATE template0");
    Postgres::execute(&admin, &create).await.unwrap();
    let options = options
        .database(&name)
        .options([("default_transaction_isolation", level.sql())]);
    let pool = PgPoolOptions::new().max_connections(8);
    pool.connect_with(options).await.unwrap()
}

async fn mariadb(level: Level) -> Pool<MySql> {
    static SERVER: LazyLock<MariaDbServer> = LazyLock::new(|| MariaDbServer::start().unwrap());
    let options = MySqlConnectOptions::from_str(&server(|| SERVER.url())).unwrap();
    let admin = MySqlPoolOptions::new().max_connections(1);
    let admin = admin.connect_with(options.clone()).await.unwrap();
    let name = name();
    MySql::execute(&admin, &format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    let pool = MySqlPoolOptions::new().max_connections(8);
    pool.after_connect(move |connection, _| {
        Box::pin(async move {
            let set = format!(
                "SET SESSION TRANSACTION ISOLATION LEVEL {}; \
                 SET SESSION innodb_snapshot_isolation = {}",
                level.sql(),
                level == Level::OneSnapshot
            );
            let set = sqlx::raw_sql(AssertSqlSafe(set));
            set.execute(connection).await.map(drop)
        })
    })
    .connect_with(options.database(&name))
    .await
    .unwrap()
}

/// The folder goes when the test's process does.
async fn sqlite(_: Level) -> Pool<Sqlite> {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
        tempfile::Builder::new()
            .prefix("idem-sqlite-")
            .tempdir()
            .unwrap()
    });
    let options = SqliteConnectOptions::new()
        .filename(FOLDER.path().join(name()))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePoolOptions::new().max_connections(8);
    pool.connect_with(options).await.unwrap()
}
