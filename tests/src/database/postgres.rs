//! PostgreSQL.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use idem_core::StoreError;
use idem_core::conformance::Harness;
use idem_core::store::{PostgresStore, Store, StoreKey};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, PgPool};

use super::{Aside, Database, LIMIT, type_of, unused_name};
use crate::attempt::{hash, left};
use crate::postgres::PostgresServer;

static SERVER: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start().unwrap());

/// A database of PostgreSQL.
#[derive(Debug)]
pub struct OnPostgres {
    direct: PgConnectOptions,
    /// What its stores are given.
    options: PgConnectOptions,
    connections: u32,
}

impl OnPostgres {
    /// The database that all laws share, with this isolation unless a statement asks for another.
    pub fn shared(isolation: &str) -> Self {
        let shared = Self::named("postgres", super::MANY);
        Self {
            options: shared
                .options
                .options([("default_transaction_isolation", isolation)]),
            ..shared
        }
    }

    fn named(database: &str, connections: u32) -> Self {
        let options = PgConnectOptions::from_str(&SERVER.url()).unwrap();
        let options = options.database(database);
        Self {
            direct: options.clone(),
            options,
            connections,
        }
    }

    /// What its stores connect with.
    pub fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// Connections as its stores have them.
    pub async fn pool(&self) -> PgPool {
        // Nobody ends these sessions: a ping before each call would only take time.
        PgPoolOptions::new()
            .max_connections(self.connections)
            .test_before_acquire(false)
            .connect_with(self.options())
            .await
            .unwrap()
    }
}

impl Harness for OnPostgres {
    type Store = PostgresStore;

    async fn fresh_store(&self) -> PostgresStore {
        let store = self.unprepared().await;
        store.migrate().await.unwrap();
        store
    }

    async fn corrupt(&self, _: &PostgresStore, key: &StoreKey) -> bool {
        let sql = "INSERT INTO idempotent_record VALUES \
                   ($1, $2, $3, '', 0, 0, 0, NULL, false, NULL, NULL, $4, '\\xff', 0, 0) \
                   ON CONFLICT (key_hash) DO UPDATE SET record = '\\xff', expire_at = $4";
        sqlx::query(sql)
            .bind(hash(key))
            .bind(type_of(key))
            .bind(key.parts())
            .bind(i64::MAX)
            .execute(&mut self.aside().await)
            .await
            .unwrap();
        true
    }

    async fn time_to_live(&self, store: &PostgresStore, key: &StoreKey) -> Option<Duration> {
        let sql = "SELECT expire_at FROM idempotent_record WHERE key_hash = $1";
        let end: Option<i64> = sqlx::query_scalar(sql)
            .bind(hash(key))
            .fetch_optional(&mut self.aside().await)
            .await
            .unwrap();
        left(end, store.now().await.unwrap())
    }

    fn pushes(&self) -> bool {
        true
    }
}

impl Database for OnPostgres {
    type Aside = PgConnection;

    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
    const OPEN: &str = "SELECT count(*) FROM pg_stat_activity \
                        WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    const BEGIN: &str = "BEGIN";
    const OTHER_HASH: &str = "sha256('another key'::bytea)";
    const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

    async fn empty() -> Self {
        let name = unused_name();
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0");
        Self::named("postgres", super::FEW)
            .aside()
            .await
            .run(&sql)
            .await;
        Self::named(&name, super::FEW)
    }

    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.direct.get_port()).into()
    }

    fn behind(self, port: u16) -> Self {
        Self {
            options: self.options.port(port),
            ..self
        }
    }

    async fn unprepared(&self) -> PostgresStore {
        PostgresStore::new(self.pool().await).limit(LIMIT)
    }

    async fn aside(&self) -> PgConnection {
        self.direct.connect().await.unwrap()
    }

    fn limited(store: &PostgresStore, limit: Duration) -> PostgresStore {
        store.clone().limit(limit)
    }

    async fn migrate(store: &PostgresStore) -> Result<(), StoreError> {
        store.migrate().await
    }

    async fn purge(store: &PostgresStore, batch: u32) -> u64 {
        store.purge(batch).await.unwrap()
    }
}

impl Aside for PgConnection {
    async fn try_run(&mut self, sql: &str) -> sqlx::Result<()> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        sql.execute(self).await.map(drop)
    }

    async fn count(&mut self, sql: &str) -> i64 {
        let sql = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        sql.fetch_one(self).await.unwrap()
    }
}
