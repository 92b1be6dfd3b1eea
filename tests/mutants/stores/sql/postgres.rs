//! PostgreSQL.

use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use idem_core::conformance::Harness;
use idem_core::store::{PostgresStore, Store, StoreKey};
use idem_tests::postgres::PostgresServer;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};
use tokio::runtime::Runtime;

use super::{Aside, CONNECTIONS, Database, LIMIT, name_of_a_database, type_of};
use crate::attempt::{hash, left};
use crate::mutant::Edit;
use crate::relay::Relay;
use crate::wire::Protocol;

static SERVER: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start().unwrap());

pub(crate) struct OnPostgres {
    relay: Relay,
    database: String,
}

fn options(database: &str) -> PgConnectOptions {
    PgConnectOptions::from_str(&SERVER.url())
        .unwrap()
        .database(database)
}

impl Harness for OnPostgres {
    type Store = PostgresStore;

    async fn fresh_store(&self) -> PostgresStore {
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .test_before_acquire(false)
            .connect_with(options(&self.database).port(self.relay.address().port()))
            .await
            .unwrap();
        let store = PostgresStore::new(pool).limit(LIMIT);
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
}

impl Database for OnPostgres {
    type Aside = PgConnection;

    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
    const BEGIN: &str = "BEGIN";
    const OTHER_HASH: &str = "sha256('another key'::bytea)";
    const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

    fn new(edit: Option<Edit>) -> Self {
        let database = name_of_a_database();
        let made = async {
            let sql = format!("CREATE DATABASE {database} TEMPLATE template0");
            options("postgres").connect().await.unwrap().run(&sql).await;
        };
        Runtime::new().unwrap().block_on(made);
        let server = ([127, 0, 0, 1], options(&database).get_port()).into();
        let relay = Relay::start(server, Protocol::Postgres, edit).unwrap();
        Self { relay, database }
    }

    fn relay(&self) -> &Relay {
        &self.relay
    }

    async fn aside(&self) -> PgConnection {
        options(&self.database).connect().await.unwrap()
    }

    fn limited(store: &PostgresStore, limit: Duration) -> PostgresStore {
        store.clone().limit(limit)
    }

    async fn purge(store: &PostgresStore, batch: u32) -> u64 {
        store.purge(batch).await.unwrap()
    }

    async fn special(&self, _: &PostgresStore) {}
}

impl Aside for PgConnection {
    async fn run(&mut self, sql: &str) {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        sql.execute(self).await.unwrap();
    }

    async fn count(&mut self, sql: &str) -> i64 {
        let sql = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        sql.fetch_one(self).await.unwrap()
    }
}
