//! PostgreSQL.

mod purge;

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use idem_core::StoreErrorKind;
use idem_core::conformance::{Course, Harness, differential};
use idem_core::record::{ClaimReply, Slot};
use idem_core::store::{PostgresStore, Store, StoreKey};
use idem_tests::long::operations;
use idem_tests::postgres::PostgresServer;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::task::JoinSet;

use crate::attempt::{TERMS, claim, codes, finish, grant, hash, key, left};
use crate::scenes;

static SERVER: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start().unwrap());

const LAWS: &str = "postgres";
const READ_COMMITTED: &str = "read committed";

fn options(database: &str) -> PgConnectOptions {
    let options = PgConnectOptions::from_str(&SERVER.url()).unwrap();
    options.database(database)
}

async fn pool(options: PgConnectOptions) -> PgPool {
    let pool = PgPoolOptions::new().max_connections(8);
    pool.connect_with(options).await.unwrap()
}

async fn run(pool: &PgPool, sql: &str) {
    let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    sql.execute(pool).await.unwrap();
}

/// A database of its own, without tables.
async fn empty_database() -> PgPool {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("made_{}", MADE.fetch_add(1, Ordering::Relaxed));
    let admin = pool(options(LAWS)).await;
    run(
        &admin,
        &format!("CREATE DATABASE {name} TEMPLATE template0"),
    )
    .await;
    pool(options(&name)).await
}

pub(crate) async fn database() -> (PgPool, PostgresStore) {
    let pool = empty_database().await;
    let store = PostgresStore::new(pool.clone());
    store.migrate().await.unwrap();
    (pool, store)
}

/// Sessions with this default isolation, on one table.
struct Isolated(&'static str);

impl Isolated {
    async fn pool(&self) -> PgPool {
        let isolation = [("default_transaction_isolation", self.0)];
        // Nobody ends these sessions: a ping before each call would only take time.
        let pool = PgPoolOptions::new().max_connections(8);
        pool.test_before_acquire(false)
            .connect_with(options(LAWS).options(isolation))
            .await
            .unwrap()
    }
}

impl Harness for Isolated {
    type Store = PostgresStore;

    async fn fresh_store(&self) -> PostgresStore {
        let store = PostgresStore::new(self.pool().await);
        store.migrate().await.unwrap();
        store
    }

    async fn corrupt(&self, _: &PostgresStore, key: &StoreKey) -> bool {
        let sql = "INSERT INTO idempotent_record VALUES \
                   ($1, $2, $3, '', 0, 0, 0, NULL, false, NULL, NULL, $4, '\\xff', 0, 0) \
                   ON CONFLICT (key_hash) DO UPDATE SET record = '\\xff', expire_at = $4";
        sqlx::query(sql)
            .bind(hash(key))
            .bind(format!("{}:{}", key.namespace(), key.prefix()))
            .bind(key.parts())
            .bind(i64::MAX)
            .execute(&pool(options(LAWS)).await)
            .await
            .unwrap();
        true
    }

    async fn time_to_live(&self, store: &PostgresStore, key: &StoreKey) -> Option<Duration> {
        let sql = "SELECT expire_at FROM idempotent_record WHERE key_hash = $1";
        let end: Option<i64> = sqlx::query_scalar(sql)
            .bind(hash(key))
            .fetch_optional(&pool(options(LAWS)).await)
            .await
            .unwrap();
        left(end, store.now().await.unwrap())
    }
}

async fn a_random_history(isolation: &'static str, operations: usize) {
    let course = Course {
        lanes: 32,
        pace: Duration::from_millis(60),
        ..Course::of(operations)
    };
    let report = differential(&Arc::new(Isolated(isolation)), course.clone()).await;
    println!("{report}");
    assert_eq!(report.operations, course.operations);
    assert_eq!(report.near_deadline, 0, "it expires to the microsecond");
}

mod at_read_committed {
    use super::*;

    idem_core::conformance_tests!(Isolated(READ_COMMITTED));

    // CASES E11
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        a_random_history(READ_COMMITTED, operations(100_000)).await;
    }
}

mod at_repeatable_read {
    use super::*;

    idem_core::conformance_tests!(Isolated("repeatable read"));

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        a_random_history("repeatable read", 20_000).await;
    }
}

mod at_serializable {
    use super::*;

    idem_core::conformance_tests!(Isolated("serializable"));

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        a_random_history("serializable", 20_000).await;
    }
}

#[tokio::test]
async fn keys_that_collations_confuse_are_apart() {
    scenes::keys_that_collations_confuse_are_apart(&database().await.1).await;
}

#[tokio::test]
async fn purges_at_once_delete_what_is_over_and_nothing_else() {
    let purge = async |store: &PostgresStore, batch| store.purge(batch).await.unwrap();
    scenes::purges_at_once_delete_what_is_over_and_nothing_else(&database().await.1, purge).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_over_four_pools_grants_each_key_once() {
    let (first, _) = database().await;
    let mut stores = Vec::new();
    for _ in 0..4 {
        let pool = pool((*first.connect_options()).clone()).await;
        stores.push(PostgresStore::new(pool).limit(Duration::from_secs(20)));
    }
    scenes::a_storm_on_few_keys_grants_each_once(&stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_migrations_at_once_are_one() {
    let first = empty_database().await;
    let mut migrations = JoinSet::new();
    for _ in 0..8 {
        let store = PostgresStore::new(pool((*first.connect_options()).clone()).await);
        migrations.spawn(async move { store.migrate().await });
    }
    for migrated in migrations.join_all().await {
        migrated.unwrap();
    }
    finish(&PostgresStore::new(first), &key("order", "1"), 1, TERMS).await;
}

#[tokio::test]
async fn a_foreign_table_and_a_later_format_are_refused_and_left_alone() {
    let foreign = empty_database().await;
    run(
        &foreign,
        "CREATE TABLE idempotent_record AS SELECT 7::bigint AS id",
    )
    .await;
    let refused = PostgresStore::new(foreign.clone()).migrate().await;
    assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Misconfigured);
    let kept = sqlx::query_scalar("SELECT id FROM idempotent_record");
    let kept: i64 = kept.fetch_one(&foreign).await.unwrap();
    assert_eq!(kept, 7);

    let (later, store) = database().await;
    run(&later, "UPDATE idempotent_record_version SET version = 2").await;
    let refused = store.migrate().await.unwrap_err();
    assert!(refused.to_string().contains("format 2"), "{refused}");
}

#[tokio::test]
async fn without_its_tables_every_verb_says_what_to_do() {
    let store = PostgresStore::new(empty_database().await);
    let missing = store.peek(&key("order", "1")).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::Misconfigured);
    assert!(missing.to_string().contains("migrate()"), "{missing}");
}

#[tokio::test]
async fn a_row_that_somebody_keeps_locked_is_an_error_within_the_limit() {
    let (pool, store) = database().await;
    let store = store.limit(Duration::from_millis(600));
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
    assert!(begin.elapsed() < Duration::from_secs(1));
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

/// Returns when a session of this database waits for a lock.
async fn somebody_waits(pool: &PgPool) {
    let sql = "SELECT count(*) FROM pg_stat_activity \
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let begin = Instant::now();
    loop {
        let waiting: i64 = sqlx::query_scalar(sql).fetch_one(pool).await.unwrap();
        if waiting > 0 {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "nobody waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

// CASES N17, N34
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
async fn a_row_that_was_inserted_without_our_lock_is_seen_before_anything_is_granted() {
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
    let sql = "SELECT count(*) FROM pg_stat_activity \
               WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    let begin = Instant::now();
    loop {
        let open: i64 = sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap();
        if open == 0 {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{open} are open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    finish(&store, &key("order", "after"), 1, TERMS).await;
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
    assert_eq!(codes(&store).await, ["no_fsync"]);
    let hasty = (*pool.connect_options()).clone();
    let hasty = hasty.options([("synchronous_commit", "off")]);
    let hasty = PostgresStore::new(PgPool::connect_with(hasty).await.unwrap());
    assert_eq!(codes(&hasty).await, ["not_durable", "no_fsync"]);
    run(&pool, "ALTER TABLE idempotent_record SET UNLOGGED").await;
    assert_eq!(codes(&store).await, ["no_fsync", "no_persistence"]);
}
