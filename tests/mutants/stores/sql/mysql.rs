//! MariaDB.

use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use idem_core::conformance::Harness;
use idem_core::store::{MySqlStore, Store, StoreKey};
use idem_tests::mariadb::MariaDbServer;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, MySqlConnection};
use tokio::runtime::Runtime;

use super::{Aside, CONNECTIONS, Database, LIMIT, name_of_a_database, type_of};
use crate::attempt::{TERMS, claim, finish, hash, key, left};
use crate::mutant::Edit;
use crate::relay::Relay;
use crate::wire::Protocol;

static SERVER: LazyLock<MariaDbServer> = LazyLock::new(|| MariaDbServer::start().unwrap());

pub(crate) struct OnMariaDb {
    relay: Relay,
    database: String,
}

fn options(database: &str) -> MySqlConnectOptions {
    MySqlConnectOptions::from_str(&SERVER.url())
        .unwrap()
        .database(database)
}

impl Harness for OnMariaDb {
    type Store = MySqlStore;

    async fn fresh_store(&self) -> MySqlStore {
        let pool = MySqlPoolOptions::new()
            .max_connections(CONNECTIONS)
            .test_before_acquire(false)
            .connect_with(options(&self.database).port(self.relay.address().port()))
            .await
            .unwrap();
        let store = MySqlStore::new(pool).limit(LIMIT);
        store.migrate().await.unwrap();
        store
    }

    async fn corrupt(&self, _: &MySqlStore, key: &StoreKey) -> bool {
        let sql = "REPLACE INTO idempotent_record VALUES \
                   (?, ?, ?, '', 0, 0, 0, NULL, false, NULL, NULL, ?, x'ff', 0, 0)";
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

    async fn time_to_live(&self, store: &MySqlStore, key: &StoreKey) -> Option<Duration> {
        let sql = "SELECT expire_at FROM idempotent_record WHERE key_hash = ?";
        let end: Option<i64> = sqlx::query_scalar(sql)
            .bind(hash(key))
            .fetch_optional(&mut self.aside().await)
            .await
            .unwrap();
        left(end, store.now().await.unwrap())
    }
}

impl Database for OnMariaDb {
    type Aside = MySqlConnection;

    const WAITING: &str = "SELECT count(*) FROM information_schema.innodb_trx \
                           JOIN information_schema.processlist ON id = trx_mysql_thread_id \
                           WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()";
    const BEGIN: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION";
    const OTHER_HASH: &str = "UNHEX(SHA2('another key', 256))";
    /// The server looks again only if nobody has asked for 100 ms.
    const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

    fn new(edit: Option<Edit>) -> Self {
        let database = name_of_a_database();
        let made = async {
            let sql = format!("CREATE DATABASE {database}");
            options("test").connect().await.unwrap().run(&sql).await;
        };
        Runtime::new().unwrap().block_on(made);
        let server = ([127, 0, 0, 1], options(&database).get_port()).into();
        let relay = Relay::start(server, Protocol::MySql, edit).unwrap();
        Self { relay, database }
    }

    fn relay(&self) -> &Relay {
        &self.relay
    }

    async fn aside(&self) -> MySqlConnection {
        options(&self.database).connect().await.unwrap()
    }

    fn limited(store: &MySqlStore, limit: Duration) -> MySqlStore {
        store.clone().limit(limit)
    }

    async fn purge(store: &MySqlStore, batch: u32) -> u64 {
        store.purge(batch).await.unwrap()
    }

    /// A session gets its own patience with locks back.
    async fn special(&self, _: &MySqlStore) {
        let pool = MySqlPoolOptions::new().max_connections(1);
        let behind = options(&self.database).port(self.relay.address().port());
        let pool = pool.connect_with(behind).await.unwrap();
        let set = sqlx::raw_sql("SET SESSION innodb_lock_wait_timeout = 37");
        set.execute(&pool).await.unwrap();
        let store = MySqlStore::new(pool.clone());
        let key = key("patience", "1");
        finish(&store, &key, 1, TERMS).await;
        let now = store.now().await.unwrap();
        store.claim(&key, &claim(2, now, TERMS)).await.unwrap();
        store.purge(10).await.unwrap();
        let patience = sqlx::query_scalar("SELECT CAST(@@innodb_lock_wait_timeout AS SIGNED)");
        let patience: i64 = patience.fetch_one(&pool).await.unwrap();
        assert_eq!(patience, 37);
    }
}

impl Aside for MySqlConnection {
    async fn run(&mut self, sql: &str) {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        sql.execute(self).await.unwrap();
    }

    async fn count(&mut self, sql: &str) -> i64 {
        let sql = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        sql.fetch_one(self).await.unwrap()
    }
}
