//! MariaDB, as a server of the MySQL protocol.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use idem_core::conformance::Harness;
use idem_core::store::{MySqlStore, Store, StoreKey};
use idem_core::{StoreError, StoreErrorKind};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, MySqlConnection, MySqlPool};

use super::locked::hold;
use super::rows::somebody_waits;
use super::{Aside, Database, LIMIT, type_of, unused_name};
use crate::attempt::{TERMS, claim, finish, hash, key, left};
use crate::mariadb::MariaDbServer;

static SERVER: LazyLock<MariaDbServer> = LazyLock::new(|| MariaDbServer::start().unwrap());

/// A database of MariaDB.
#[derive(Debug, Clone)]
pub struct OnMariaDb {
    direct: MySqlConnectOptions,
    /// What its stores are given.
    options: MySqlConnectOptions,
    isolation: &'static str,
    /// Whether a session commits each statement by itself.
    autocommit: bool,
    connections: u32,
}

impl OnMariaDb {
    /// The database that all laws share, with this isolation unless a statement asks for another.
    pub fn shared(isolation: &'static str) -> Self {
        Self {
            isolation,
            ..Self::named("test", super::MANY)
        }
    }

    /// The same with sessions that commit nothing by themselves.
    pub fn without_autocommit() -> Self {
        Self {
            autocommit: false,
            ..Self::shared("REPEATABLE READ")
        }
    }

    fn named(database: &str, connections: u32) -> Self {
        let options = MySqlConnectOptions::from_str(&SERVER.url()).unwrap();
        let options = options.database(database);
        Self {
            direct: options.clone(),
            options,
            isolation: "REPEATABLE READ",
            autocommit: true,
            connections,
        }
    }

    /// Connections as its stores have them, but for their number.
    pub async fn pool(&self, connections: u32) -> MySqlPool {
        let set = format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL {}; SET SESSION autocommit = {}",
            self.isolation, self.autocommit
        );
        // Nobody ends these sessions: a ping before each call would only take time.
        MySqlPoolOptions::new()
            .max_connections(connections)
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let set = sqlx::raw_sql(AssertSqlSafe(set.clone()));
                Box::pin(async move { set.execute(connection).await.map(drop) })
            })
            .connect_with(self.options.clone())
            .await
            .unwrap()
    }
}

impl Harness for OnMariaDb {
    type Store = MySqlStore;

    async fn fresh_store(&self) -> MySqlStore {
        let store = self.unprepared().await;
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

    fn pushes(&self) -> bool {
        true
    }
}

impl Database for OnMariaDb {
    type Aside = MySqlConnection;

    const WAITING: &str = "SELECT count(*) FROM information_schema.innodb_trx \
                           JOIN information_schema.processlist ON id = trx_mysql_thread_id \
                           WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()";
    const OPEN: &str = "SELECT count(*) FROM information_schema.innodb_trx \
                        JOIN information_schema.processlist ON id = trx_mysql_thread_id \
                        WHERE db = DATABASE()";
    const BEGIN: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION";
    const OTHER_HASH: &str = "UNHEX(SHA2('another key', 256))";
    /// The server looks again only if nobody has asked for 100 ms.
    const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

    async fn empty() -> Self {
        let name = unused_name();
        let sql = format!("CREATE DATABASE {name}");
        Self::named("test", super::FEW)
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

    async fn unprepared(&self) -> MySqlStore {
        MySqlStore::new(self.pool(self.connections).await).limit(LIMIT)
    }

    async fn aside(&self) -> MySqlConnection {
        self.direct.connect().await.unwrap()
    }

    fn limited(store: &MySqlStore, limit: Duration) -> MySqlStore {
        store.clone().limit(limit)
    }

    async fn migrate(store: &MySqlStore) -> Result<(), StoreError> {
        store.migrate().await
    }

    async fn purge(store: &MySqlStore, batch: u32) -> u64 {
        store.purge(batch).await.unwrap()
    }
}

/// What a session is asked for, and what is its own.
const PATIENCES: [(&str, i64); 2] = [("innodb_lock_wait_timeout", 37), ("wait_timeout", 3600)];

/// The only session of a pool, which has a patience of its own with locks and with silence.
struct Session {
    pool: MySqlPool,
    id: i64,
}

impl Session {
    async fn of(pool: &MySqlPool) -> Self {
        for (variable, own) in PATIENCES {
            let set = format!("SET SESSION {variable} = {own}");
            let set = sqlx::raw_sql(AssertSqlSafe(set));
            set.execute(pool).await.unwrap();
        }
        Self {
            pool: pool.clone(),
            id: asked(pool, "CONNECTION_ID()").await,
        }
    }

    /// Waits for what a call has left it with.
    async fn is_itself(&self, after: &str) {
        assert_eq!(
            asked(&self.pool, "CONNECTION_ID()").await,
            self.id,
            "{after}"
        );
        for (variable, own) in PATIENCES {
            let found = asked(&self.pool, &format!("@@{variable}")).await;
            assert_eq!(found, own, "{variable} after {after}");
        }
    }
}

async fn asked(pool: &MySqlPool, what: &str) -> i64 {
    let ask = format!("SELECT CAST({what} AS SIGNED)");
    let ask = sqlx::query_scalar(AssertSqlSafe(ask));
    ask.fetch_one(pool).await.unwrap()
}

/// By somebody whose `begin` was dropped, of which sqlx knows nothing. What was written there is not
/// for us to commit.
pub async fn a_connection_that_was_left_in_a_transaction_is_of_use(database: &OnMariaDb) {
    let pool = database.pool(1).await;
    let store = MySqlStore::new(pool.clone());
    store.migrate().await.unwrap();
    let mut aside = database.aside().await;
    aside.run("DROP TABLE IF EXISTS left_over").await;
    let table = "CREATE TABLE left_over (number INT) ENGINE = InnoDB";
    aside.run(table).await;
    let leave = async || {
        let left = sqlx::raw_sql("BEGIN; INSERT INTO left_over VALUES (1)");
        left.execute(&pool).await.unwrap();
    };
    let (key, now) = (key("left", "over"), store.now().await.unwrap());
    for number in 1..=2 {
        leave().await;
        let claim = claim(number, now, TERMS);
        store.claim(&key, &claim).await.unwrap();
        leave().await;
        store.peek(&key).await.unwrap();
    }
    let committed = aside.count("SELECT count(*) FROM left_over").await;
    assert_eq!(committed, 0);
}

/// The server commits tables by itself, and the version behind them only if it is told to.
pub async fn a_migration_is_committed_in_a_session_without_autocommit(database: &OnMariaDb) {
    let mut aside = database.aside().await;
    for table in ["idempotent_record", "idempotent_record_version"] {
        aside.run(&format!("DROP TABLE IF EXISTS {table}")).await;
    }
    let silent = OnMariaDb {
        autocommit: false,
        ..database.clone()
    };
    silent.fresh_store().await;
    let versions = "SELECT count(*) FROM idempotent_record_version";
    assert_eq!(aside.count(versions).await, 1);
}

/// Whatever the isolation of its session is: a stricter one locks the gaps between rows, too.
pub async fn a_call_that_writes_is_at_read_committed(database: &OnMariaDb) {
    let store = database.fresh_store().await;
    let key = key("isolation", "held");
    finish(&store, &key, 1, TERMS).await;
    let mut other = hold(database, "isolation").await;
    let mut aside = database.aside().await;
    let second = claim(2, store.now().await.unwrap(), TERMS);
    let (_, at_read_committed) = tokio::join!(store.claim(&key, &second), async {
        somebody_waits(database).await;
        let waiting = OnMariaDb::WAITING;
        let level = "trx_isolation_level = 'READ COMMITTED'";
        let waiting = aside.count(&format!("{waiting} AND {level}")).await;
        other.run("ROLLBACK").await;
        waiting
    });
    assert_eq!(at_read_committed, 1);
}

/// A session gets its own patience with locks back.
pub async fn a_session_gets_its_own_patience_back(database: &OnMariaDb) {
    let pool = database.pool(1).await;
    let session = Session::of(&pool).await;
    let store = MySqlStore::new(pool);
    store.migrate().await.unwrap();
    let key = key("patience", "1");
    finish(&store, &key, 1, TERMS).await;
    let now = store.now().await.unwrap();
    store.claim(&key, &claim(2, now, TERMS)).await.unwrap();
    store.purge(10).await.unwrap();
    session.is_itself("calls that are answered").await;
}

/// Also where the message that took it is refused, whatever for, and where nobody hears so any more.
pub async fn a_session_whose_call_is_refused_gets_its_own_patience_back(database: &OnMariaDb) {
    const REFUSED: [(&str, &str, StoreErrorKind, &str); 2] = [
        (
            "no room",
            "CREATE TRIGGER no_room BEFORE INSERT ON idempotent_record FOR EACH ROW \
             SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114",
            StoreErrorKind::Refused,
            "DROP TRIGGER no_room",
        ),
        (
            "a deadlock",
            "CREATE TRIGGER deadlock BEFORE INSERT ON idempotent_record FOR EACH ROW \
             SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213",
            StoreErrorKind::Conflict,
            "DROP TRIGGER deadlock",
        ),
    ];
    let pool = database.pool(1).await;
    let session = Session::of(&pool).await;
    let store = MySqlStore::new(pool.clone());
    let (key, now) = (key("patience", "held"), store.now().await.unwrap());
    let claim = claim(1, now, TERMS);
    let refused = async |why: &str| {
        let refused = store.claim(&key, &claim).await.unwrap_err();
        session.is_itself(why).await;
        refused.kind()
    };
    let no_tables = refused("no tables").await;
    assert_eq!(no_tables, StoreErrorKind::Misconfigured);
    store.migrate().await.unwrap();
    for (why, set, kind, unset) in REFUSED {
        sqlx::raw_sql(set).execute(&pool).await.unwrap();
        assert_eq!(refused(why).await, kind, "{why}");
        sqlx::raw_sql(unset).execute(&pool).await.unwrap();
    }

    finish(&store, &key, 1, TERMS).await;
    let mut other = database.aside().await;
    other.run(OnMariaDb::BEGIN).await;
    let lock = "SELECT 1 FROM idempotent_record FOR UPDATE";
    other.run(lock).await;
    // Answered before the server is.
    drop(store.claim(&key, &claim).await);
    session.is_itself("a lock").await;
    let waits = store.claim(&key, &claim);
    let dropped = tokio::time::timeout(Duration::from_millis(200), waits).await;
    dropped.unwrap_err();
    session
        .is_itself("a lock, and nobody who waits for it")
        .await;
    other.run("ROLLBACK").await;
}

impl Aside for MySqlConnection {
    async fn try_run(&mut self, sql: &str) -> sqlx::Result<()> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        sql.execute(self).await.map(drop)
    }

    async fn count(&mut self, sql: &str) -> i64 {
        let sql = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        sql.fetch_one(self).await.unwrap()
    }
}
