//! MariaDB, as a server of the MySQL protocol.

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use idem_core::StoreErrorKind;
use idem_core::conformance::{Course, Harness, differential};
use idem_core::record::{ClaimReply, Slot};
use idem_core::store::{MySqlStore, Store, StoreKey};
use idem_tests::long::operations;
use idem_tests::mariadb::MariaDbServer;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, MySqlPool};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::attempt::{TERMS, claim, codes, finish, grant, hash, key, left};
use crate::scenes;

static SERVER: LazyLock<MariaDbServer> = LazyLock::new(|| MariaDbServer::start().unwrap());

const LAWS: &str = "test";

fn options(database: &str) -> MySqlConnectOptions {
    let options = MySqlConnectOptions::from_str(&SERVER.url()).unwrap();
    options.database(database)
}

async fn pool(database: &str) -> MySqlPool {
    let pool = MySqlPoolOptions::new().max_connections(8);
    pool.connect_with(options(database)).await.unwrap()
}

async fn run(pool: &MySqlPool, sql: &str) {
    let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    sql.execute(pool).await.unwrap();
}

/// A database of its own, without tables.
async fn empty_database() -> (String, MySqlPool) {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("made_{}", MADE.fetch_add(1, Ordering::Relaxed));
    run(&pool(LAWS).await, &format!("CREATE DATABASE {name}")).await;
    let pool = pool(&name).await;
    (name, pool)
}

pub(crate) async fn database() -> (MySqlPool, MySqlStore) {
    let (_, pool) = empty_database().await;
    let store = MySqlStore::new(pool.clone());
    store.migrate().await.unwrap();
    (pool, store)
}

/// Sessions with this default isolation, on one table.
struct Isolated {
    level: &'static str,
    aside: OnceCell<MySqlPool>,
}

impl Isolated {
    fn new(level: &'static str) -> Self {
        Self {
            level,
            aside: OnceCell::new(),
        }
    }

    async fn pool(&self) -> MySqlPool {
        let level = self.level;
        // Nobody ends these sessions: a ping before each call would only take time.
        let pool = MySqlPoolOptions::new().max_connections(8);
        pool.test_before_acquire(false)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
                    let set = sqlx::raw_sql(AssertSqlSafe(set));
                    set.execute(connection).await.map(drop)
                })
            })
            .connect_with(options(LAWS))
            .await
            .unwrap()
    }

    /// For what the suite does behind the store's back.
    async fn aside(&self) -> &MySqlPool {
        self.aside.get_or_init(|| pool(LAWS)).await
    }
}

impl Harness for Isolated {
    type Store = MySqlStore;

    async fn fresh_store(&self) -> MySqlStore {
        let store = MySqlStore::new(self.pool().await);
        store.migrate().await.unwrap();
        store
    }

    async fn corrupt(&self, _: &MySqlStore, key: &StoreKey) -> bool {
        let sql = "REPLACE INTO idempotent_record VALUES \
                   (?, ?, ?, '', 0, 0, 0, NULL, false, NULL, NULL, ?, x'ff', 0, 0)";
        sqlx::query(sql)
            .bind(hash(key))
            .bind(format!("{}:{}", key.namespace(), key.prefix()))
            .bind(key.parts())
            .bind(i64::MAX)
            .execute(self.aside().await)
            .await
            .unwrap();
        true
    }

    async fn time_to_live(&self, store: &MySqlStore, key: &StoreKey) -> Option<Duration> {
        let sql = "SELECT expire_at FROM idempotent_record WHERE key_hash = ?";
        let end: Option<i64> = sqlx::query_scalar(sql)
            .bind(hash(key))
            .fetch_optional(self.aside().await)
            .await
            .unwrap();
        left(end, store.now().await.unwrap())
    }
}

async fn a_random_history(level: &'static str, operations: usize) {
    let course = Course {
        lanes: 32,
        pace: Duration::from_millis(60),
        ..Course::of(operations)
    };
    let report = differential(&Arc::new(Isolated::new(level)), course.clone()).await;
    println!("{report}");
    assert_eq!(report.operations, course.operations);
    assert_eq!(report.near_deadline, 0, "it expires to the microsecond");
}

mod at_read_committed {
    use super::*;

    idem_core::conformance_tests!(Isolated::new("READ COMMITTED"));

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        a_random_history("READ COMMITTED", 20_000).await;
    }
}

mod at_repeatable_read {
    use super::*;

    idem_core::conformance_tests!(Isolated::new("REPEATABLE READ"));

    // CASES E11
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        a_random_history("REPEATABLE READ", operations(100_000)).await;
    }
}

#[tokio::test]
async fn keys_that_collations_confuse_are_apart() {
    scenes::keys_that_collations_confuse_are_apart(&database().await.1).await;
}

#[tokio::test]
async fn purges_at_once_delete_what_is_over_and_nothing_else() {
    let purge = async |store: &MySqlStore, batch| store.purge(batch).await.unwrap();
    scenes::purges_at_once_delete_what_is_over_and_nothing_else(&database().await.1, purge).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_over_four_pools_grants_each_key_once() {
    let (name, first) = empty_database().await;
    MySqlStore::new(first).migrate().await.unwrap();
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(MySqlStore::new(pool(&name).await).limit(Duration::from_secs(20)));
    }
    scenes::a_storm_on_few_keys_grants_each_once(&stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_migrations_at_once_are_one() {
    let (name, first) = empty_database().await;
    let mut migrations = JoinSet::new();
    for _ in 0..8 {
        let store = MySqlStore::new(pool(&name).await);
        migrations.spawn(async move { store.migrate().await });
    }
    for migrated in migrations.join_all().await {
        migrated.unwrap();
    }
    finish(&MySqlStore::new(first), &key("order", "1"), 1, TERMS).await;
}

#[tokio::test]
async fn a_migration_that_was_killed_half_way_is_finished() {
    let (_, pool) = empty_database().await;
    run(
        &pool,
        "CREATE TABLE idempotent_record_version (version BIGINT NOT NULL PRIMARY KEY)",
    )
    .await;
    let store = MySqlStore::new(pool);
    store.migrate().await.unwrap();
    finish(&store, &key("order", "1"), 1, TERMS).await;
}

#[tokio::test]
async fn a_foreign_table_and_a_later_format_are_refused_and_left_alone() {
    let (_, foreign) = empty_database().await;
    run(&foreign, "CREATE TABLE idempotent_record AS SELECT 7 AS id").await;
    let refused = MySqlStore::new(foreign.clone()).migrate().await;
    assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Misconfigured);
    let kept = sqlx::query_scalar("SELECT count(*) FROM idempotent_record WHERE id = 7");
    let kept: i64 = kept.fetch_one(&foreign).await.unwrap();
    assert_eq!(kept, 1);

    let (later, store) = database().await;
    run(&later, "UPDATE idempotent_record_version SET version = 2").await;
    let refused = store.migrate().await.unwrap_err();
    assert!(refused.to_string().contains("format 2"), "{refused}");
}

#[tokio::test]
async fn without_its_tables_every_verb_says_what_to_do() {
    let store = MySqlStore::new(empty_database().await.1);
    let missing = store.peek(&key("order", "1")).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::Misconfigured);
    assert!(missing.to_string().contains("migrate()"), "{missing}");
}

#[tokio::test]
async fn a_row_that_somebody_keeps_locked_is_an_error_within_the_limit() {
    let (pool, store) = database().await;
    let key = key("order", "1");
    finish(&store, &key, 1, TERMS).await;
    let mut foreign = pool.begin().await.unwrap();
    sqlx::raw_sql("SELECT 1 FROM idempotent_record FOR UPDATE")
        .execute(&mut *foreign)
        .await
        .unwrap();
    let now = store.now().await.unwrap();
    let begin = Instant::now();
    let locked = store.claim(&key, &claim(2, now, TERMS)).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert_eq!(locked.kind(), StoreErrorKind::Refused, "{locked}");
    assert!(locked.is_before_sending());
    assert!(matches!(
        store.peek(&key).await.unwrap().reply,
        Slot::Record(_)
    ));
    foreign.rollback().await.unwrap();
    let after = store.claim(&key, &claim(2, now, TERMS)).await.unwrap();
    assert!(matches!(after.reply, ClaimReply::Completed { .. }));
}

/// The server looks again only if nobody has asked for 100 ms.
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

/// Returns when a transaction of this database waits for a lock.
async fn somebody_waits(pool: &MySqlPool) {
    let sql = "SELECT count(*) FROM information_schema.innodb_trx \
               JOIN information_schema.processlist ON id = trx_mysql_thread_id \
               WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()";
    let begin = Instant::now();
    loop {
        let waiting: i64 = sqlx::query_scalar(sql).fetch_one(pool).await.unwrap();
        if waiting > 0 {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "nobody waits");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

// CASES N34
#[tokio::test]
async fn a_lease_that_was_granted_after_a_wait_counts_from_the_grant() {
    let (pool, store) = database().await;
    let store = store.limit(Duration::from_secs(20));
    let key = key("order", "1");
    let now = store.now().await.unwrap();
    let mut brief = TERMS;
    brief.lease = Duration::from_millis(1);
    let mut first = claim(1, now, brief);
    first.checkpoint = false;
    grant(store.claim(&key, &first).await.unwrap().reply);
    let mut foreign = pool.begin().await.unwrap();
    sqlx::raw_sql("SELECT 1 FROM idempotent_record FOR UPDATE")
        .execute(&mut *foreign)
        .await
        .unwrap();
    let waiting = {
        let (store, key) = (store.clone(), key.clone());
        tokio::spawn(async move { store.claim(&key, &claim(2, now, TERMS)).await })
    };
    somebody_waits(&pool).await;
    let released = store.now().await.unwrap();
    foreign.rollback().await.unwrap();
    let granted = grant(waiting.await.unwrap().unwrap().reply);
    assert!(granted.takeover);
    assert!(granted.since >= released, "{granted:?} before {released:?}");
}

// CASES N12
#[tokio::test]
async fn a_row_that_was_inserted_meanwhile_is_seen_before_anything_is_granted() {
    let (pool, store) = database().await;
    let store = store.limit(Duration::from_secs(20));
    let key = key("order", "1");
    finish(&store, &key, 1, TERMS).await;
    run(
        &pool,
        "CREATE TABLE copy AS SELECT * FROM idempotent_record; DELETE FROM idempotent_record",
    )
    .await;
    let mut foreign = pool.begin().await.unwrap();
    sqlx::raw_sql("INSERT INTO idempotent_record SELECT * FROM copy")
        .execute(&mut *foreign)
        .await
        .unwrap();
    let now = store.now().await.unwrap();
    let waiting = {
        let (store, key) = (store.clone(), key.clone());
        tokio::spawn(async move { store.claim(&key, &claim(2, now, TERMS)).await })
    };
    somebody_waits(&pool).await;
    foreign.commit().await.unwrap();
    let answer = waiting.await.unwrap().unwrap().reply;
    assert!(matches!(answer, ClaimReply::Completed { .. }), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_dropped_anywhere_leave_no_open_transaction() {
    let (pool, store) = database().await;
    let now = store.now().await.unwrap();
    for number in 0..300_u64 {
        let key = key("order", &(number % 5).to_string());
        let op = claim(number, now, TERMS);
        let given_up = store.claim(&key, &op);
        let patience = Duration::from_micros(number * 10);
        // Some are answered; the point is what the others leave.
        drop(tokio::time::timeout(patience, given_up).await);
    }
    let sql = "SELECT count(*) FROM information_schema.innodb_trx \
               JOIN information_schema.processlist ON id = trx_mysql_thread_id \
               WHERE db = DATABASE()";
    let begin = Instant::now();
    loop {
        let open: i64 = sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap();
        if open == 0 {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{open} are open");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    finish(&store, &key("order", "after"), 1, TERMS).await;
}

#[tokio::test]
async fn a_session_gets_its_own_patience_back() {
    let (name, first) = empty_database().await;
    MySqlStore::new(first).migrate().await.unwrap();
    let pool = MySqlPoolOptions::new().max_connections(1);
    let pool = pool.connect_with(options(&name)).await.unwrap();
    run(&pool, "SET SESSION innodb_lock_wait_timeout = 37").await;
    let store = MySqlStore::new(pool.clone());
    finish(&store, &key("order", "1"), 1, TERMS).await;
    let now = store.now().await.unwrap();
    store
        .claim(&key("order", "1"), &claim(2, now, TERMS))
        .await
        .unwrap();
    store.purge(10).await.unwrap();
    let patience = sqlx::query_scalar("SELECT CAST(@@innodb_lock_wait_timeout AS SIGNED)");
    let patience: i64 = patience.fetch_one(&pool).await.unwrap();
    assert_eq!(patience, 37);
}

#[test]
fn a_store_answers_while_the_runtime_that_made_it_is_blocked_and_after_it_has_ended() {
    scenes::runtimes_do_not_depend_on_each_other(async || {
        let (_, store) = database().await;
        store
    });
}

#[tokio::test]
async fn check_names_what_can_lose_records() {
    let (pool, store) = database().await;
    assert_eq!(codes(&store).await, ["not_durable"]);
    let careless = Isolated::new("READ UNCOMMITTED").fresh_store().await;
    assert_eq!(codes(&careless).await, ["not_durable", "read_uncommitted"]);
    run(&pool, "ALTER TABLE idempotent_record ENGINE = Aria").await;
    assert_eq!(codes(&store).await, ["no_transactions", "not_durable"]);
}
