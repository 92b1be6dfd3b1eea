//! SQLite, in a file of a temporary folder.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_core::conformance::Harness;
use idem_core::record::{
    Fence, Forget, OperatorReply, Outcome, Settle, SettleReply, Slot, Status, Terms,
};
use idem_core::store::{Scan, SqliteStore, Store, StoreKey};
use idem_core::{Error, Idempotency, Key, Policy, StoreErrorKind};
use idem_tests::attempt::{TERMS, claim, codes, finish, grant, hash, key, left, owner};
use idem_tests::body::until;
use idem_tests::database::{Aside, scenes};
use idem_tests::long::{is_long, operations};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqlitePool};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::{backlog, history};

/// Takes the whole file. In small letters, or a mutant of the store's own words would change it, too.
const KEEP: &str = "begin immediate";

/// A file of its own.
struct InAFile {
    folder: TempDir,
    journal: SqliteJournalMode,
}

impl InAFile {
    fn new() -> Self {
        Self::with(SqliteJournalMode::Wal)
    }

    fn with(journal: SqliteJournalMode) -> Self {
        let folder = tempfile::Builder::new().prefix("idem-sqlite-").tempdir();
        Self {
            folder: folder.unwrap(),
            journal,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("records.db")
    }

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(self.path())
            .create_if_missing(true)
            .journal_mode(self.journal)
            .synchronous(SqliteSynchronous::Normal)
    }

    async fn pool(&self) -> SqlitePool {
        let pool = SqlitePoolOptions::new().max_connections(4);
        pool.connect_with(self.options()).await.unwrap()
    }

    async fn store(&self) -> SqliteStore {
        let store = SqliteStore::new(self.pool().await);
        store.migrate().await.unwrap();
        store
    }
}

impl Harness for InAFile {
    type Store = SqliteStore;

    /// One call at a time writes in a file: on a busy machine the last of many waits for long.
    async fn fresh_store(&self) -> SqliteStore {
        self.store().await.limit(Duration::from_secs(20))
    }

    async fn corrupt(&self, _: &SqliteStore, key: &StoreKey) -> bool {
        let sql = "INSERT OR REPLACE INTO idempotent_record VALUES \
                   (?1, ?2, ?3, x'00', 0, 0, 0, NULL, 0, NULL, NULL, ?4, x'ff', 0, 0)";
        sqlx::query(sql)
            .bind(hash(key))
            .bind(format!("{}:{}", key.namespace(), key.prefix()))
            .bind(key.parts())
            .bind(i64::MAX)
            .execute(&self.pool().await)
            .await
            .unwrap();
        true
    }

    async fn time_to_live(&self, store: &SqliteStore, key: &StoreKey) -> Option<Duration> {
        let sql = "SELECT expire_at FROM idempotent_record WHERE key_hash = ?1";
        let end: Option<i64> = sqlx::query_scalar(sql)
            .bind(hash(key))
            .fetch_optional(&self.pool().await)
            .await
            .unwrap();
        left(end, store.now().await.unwrap())
    }

    fn pushes(&self) -> bool {
        true
    }
}

idem_core::conformance_tests!(InAFile::new());

/// As files are unless somebody says otherwise: readers and writers keep each other out.
mod in_a_rollback_journal {
    use super::*;

    idem_core::conformance_tests!(InAFile::with(SqliteJournalMode::Delete));

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        let file = InAFile::with(SqliteJournalMode::Delete);
        let name = "SQLite, in a rollback journal";
        history::is_the_specification(name, file, 10_000).await;
    }
}

// CASES E11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_random_history_is_the_specification() {
    history::is_the_specification("SQLite", InAFile::new(), operations(10_000)).await;
}

#[tokio::test]
async fn keys_that_collations_confuse_are_apart() {
    scenes::keys_that_collations_confuse_are_apart(&InAFile::new().store().await).await;
}

#[tokio::test]
async fn purges_at_once_delete_what_is_over_and_nothing_else() {
    let file = InAFile::new();
    let store = file.store().await;
    scenes::purges_at_once_delete_what_is_over_and_nothing_else(&store, async |store, batch| {
        store.purge(batch).await.unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_purge_takes_the_oldest() {
    let file = InAFile::new();
    let (store, mut aside) = (file.store().await, file.options().connect().await.unwrap());
    let now = store.now().await.unwrap();
    for (name, ms) in [("old", 1), ("young", 30)] {
        let lives = Terms {
            lease: Duration::from_millis(1),
            expire: Duration::from_millis(ms),
            doubt: Duration::from_millis(1),
            ..TERMS
        };
        let (key, claim) = (key("purge", name), claim(1, now, lives));
        grant(store.claim(&key, &claim).await.unwrap().reply);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(store.purge(1).await.unwrap(), 1);
    let left = "SELECT count(*) FROM idempotent_record WHERE business_key = 'young'";
    assert_eq!(aside.count(left).await, 1);
    assert_eq!(store.purge(1).await.unwrap(), 1);
}

#[tokio::test]
async fn a_row_tells_when_it_was_made_and_changed() {
    let file = InAFile::new();
    let (store, key) = (file.store().await, key("order", "1"));
    let now = store.now().await.unwrap();
    let answer = store.claim(&key, &claim(1, now, TERMS)).await.unwrap();
    let granted = grant(answer.reply).since;
    while store.now().await.unwrap() <= granted {}
    let settle = Settle {
        owner: owner(1),
        terms: TERMS,
        outcome: Outcome::Success(None),
        not_after: now.after(TERMS.limit),
        echo: None,
    };
    let answer = store.settle(&key, &settle).await.unwrap();
    assert_eq!(answer.reply, SettleReply::Settled);
    let told = format!(
        "SELECT count(*) FROM idempotent_record \
         WHERE create_time = {} AND update_time > create_time",
        granted.as_micros()
    );
    let mut aside = file.options().connect().await.unwrap();
    assert_eq!(aside.count(&told).await, 1);
}

#[tokio::test]
async fn a_row_that_goes_leaves_the_others() {
    let file = InAFile::new();
    let (store, other, gone) = (file.store().await, key("order", "1"), key("order", "2"));
    finish(&store, &other, 1, TERMS).await;
    assert!(file.corrupt(&store, &gone).await);
    let forget = Forget {
        fence: Fence::default(),
        status: Status::Damaged,
        release: false,
        force: true,
    };
    let answer = store.forget(&gone, &forget).await.unwrap();
    assert_eq!(answer.reply, OperatorReply::Done);
    assert_eq!(store.peek(&gone).await.unwrap().reply, Slot::Absent);
    let kept = store.peek(&other).await.unwrap().reply;
    assert!(matches!(kept, Slot::Record(_)), "{kept:?}");
}

/// Where a collation took two for one, the page behind the first would begin behind both.
#[tokio::test]
async fn a_scan_of_single_rows_shows_each_once() {
    let file = InAFile::new();
    let store = file.store().await;
    let keys = [
        ("pay", "a"),
        ("pay", "A"),
        ("pay", "b"),
        ("PAY", "a"),
        ("refund", "a"),
    ];
    let keys = keys.map(|(prefix, part)| key(prefix, part));
    for (number, key) in (0..).zip(&keys) {
        finish(&store, key, number, TERMS).await;
    }
    let mut missing: BTreeSet<_> = keys.iter().map(StoreKey::as_str).collect();
    let mut scan = Scan {
        prefix: "shop:".into(),
        cursor: None,
        page_size: 1,
    };
    loop {
        let page = store.scan(&scan).await.unwrap().reply;
        for (text, _) in &page.entries {
            assert!(missing.remove(text.as_str()), "{text} once more");
        }
        scan.cursor = page.next;
        if scan.cursor.is_none() {
            break;
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// So many rows that are over, otherwise like the sample.
fn copies(count: u64) -> String {
    format!(
        "WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < {count}) \
         INSERT INTO idempotent_record SELECT randomblob(32), 'shop:over', n, \
         request_id, status, fence, attempt, fingerprint, checkpoint, lease_until, response_data, \
         n, record, create_time, update_time \
         FROM idempotent_record, n WHERE business_key = 'sample'"
    )
}

// CASES Q11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_backlog_goes_in_batches_beside_live_calls() {
    let rows: u64 = if is_long() { 1_000_000 } else { 100_000 };
    let file = InAFile::new();
    let stores = [file.fresh_store().await, file.fresh_store().await];
    let aside = file.options().connect().await.unwrap();
    let purge = async |store: &SqliteStore, batch| store.purge(batch).await.unwrap();
    let backlog = (rows, copies(rows));
    backlog::goes_in_batches_beside_live_calls("SQLite", aside, stores, purge, backlog).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_that_keeps_the_file_is_found_out() {
    let file = InAFile::new();
    let options = file.options().busy_timeout(Duration::from_mins(1));
    let store = SqliteStore::new(SqlitePool::connect_with(options).await.unwrap());
    store.migrate().await.unwrap();
    let store = store.limit(Duration::from_mins(1));
    let aside = file.options().connect().await.unwrap();
    let lock = [KEEP, "COMMIT"];
    backlog::a_purge_that_locks_the_table_is_found_out(store, aside, lock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_over_four_pools_grants_each_key_once() {
    let file = InAFile::new();
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(file.store().await.limit(Duration::from_secs(20)));
    }
    scenes::a_storm_on_few_keys_grants_each_once(&stores).await;
}

// CASES N34
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_counts_from_its_grant() {
    let file = InAFile::new();
    let store = file.store().await.limit(Duration::from_secs(20));
    finish(&store, &key("order", "first"), 1, TERMS).await;
    let keeper = file.pool().await.begin_with(KEEP).await;
    let (key, now) = (key("order", "late"), store.now().await.unwrap());
    let claim = claim(1, now, TERMS);
    let (answer, released) = tokio::join!(store.claim(&key, &claim), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let released = store.now().await.unwrap();
        keeper.unwrap().rollback().await.unwrap();
        released
    });
    let granted = grant(answer.unwrap().reply);
    assert!(granted.since >= released, "{granted:?} before {released:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_migrations_at_once_are_one() {
    let file = InAFile::new();
    let mut migrations = JoinSet::new();
    for _ in 0..8 {
        let store = SqliteStore::new(file.pool().await);
        migrations.spawn(async move { store.migrate().await });
    }
    for migrated in migrations.join_all().await {
        migrated.unwrap();
    }
    finish(&file.store().await, &key("order", "1"), 1, TERMS).await;
}

#[tokio::test]
async fn a_foreign_table_and_a_later_format_are_refused_and_left_alone() {
    let file = InAFile::new();
    let pool = file.pool().await;
    sqlx::raw_sql(
        "CREATE TABLE idempotent_record (id INTEGER); INSERT INTO idempotent_record VALUES (7)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let refused = SqliteStore::new(pool.clone()).migrate().await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Misconfigured);
    let kept: i64 = sqlx::query_scalar("SELECT id FROM idempotent_record")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(kept, 7);

    let later = InAFile::new();
    let store = later.store().await;
    sqlx::raw_sql("UPDATE idempotent_record_version SET version = 2")
        .execute(&later.pool().await)
        .await
        .unwrap();
    let refused = store.migrate().await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Misconfigured);
    assert!(refused.to_string().contains("format 2"), "{refused}");
}

#[tokio::test]
async fn without_its_tables_every_verb_says_what_to_do() {
    let file = InAFile::new();
    let store = SqliteStore::new(file.pool().await);
    let missing = store.peek(&key("order", "1")).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::Misconfigured);
    assert!(missing.to_string().contains("migrate()"), "{missing}");
}

#[tokio::test]
async fn a_row_that_somebody_changed_by_hand_is_damaged() {
    let file = InAFile::new();
    let store = file.store().await;
    let key = key("order", "1");
    for change in [
        "status = 2",
        "fence = fence + 1",
        "response_data = NULL",
        "request_id = zeroblob(16)",
        "lease_until = 1",
        "record = x'02'",
    ] {
        sqlx::raw_sql("DELETE FROM idempotent_record")
            .execute(&file.pool().await)
            .await
            .unwrap();
        finish(&store, &key, 1, TERMS).await;
        let change = format!("UPDATE idempotent_record SET {change}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(change.clone()))
            .execute(&file.pool().await)
            .await
            .unwrap();
        let seen = store.peek(&key).await.unwrap().reply;
        assert_eq!(seen, Slot::Damaged, "{change}");
    }
}

#[tokio::test]
async fn a_file_that_somebody_keeps_locked_is_an_error_within_the_limit() {
    let file = InAFile::new();
    let store = file.store().await.limit(Duration::from_millis(300));
    let pool = file.pool().await;
    let held = pool.begin_with(KEEP).await.unwrap();
    let now = store.now().await.unwrap();
    let key = key("order", "1");
    let begin = std::time::Instant::now();
    let locked = store.claim(&key, &claim(1, now, TERMS)).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(2), "{locked}");
    held.rollback().await.unwrap();
    // The claim that was given up is not done later, and its connection is of use again.
    finish(&store.limit(Duration::from_secs(10)), &key, 2, TERMS).await;
}

/// What somebody does in the file says nothing of a key, but whoever has the file may have this one.
async fn is_no_leave_to_run(file: &InAFile, keep: &'static str) {
    let store = file.store().await.limit(Duration::from_secs(1));
    let idem = Idempotency::builder(store).build().unwrap();
    let bodies = AtomicU32::new(0);
    let call = || {
        let key = Key::new("order", "1").unwrap();
        idem.run(key, Policy::new().run_on_store_error(), async || {
            Ok::<_, Error>(bodies.fetch_add(1, Ordering::SeqCst))
        })
    };
    let mut keeper = file.options().connect().await.unwrap();
    sqlx::raw_sql(keep).execute(&mut keeper).await.unwrap();
    match call().await {
        Err(Error::Store { source, .. }) => {
            assert_eq!(source.kind(), StoreErrorKind::Conflict, "{source}");
        }
        other => panic!("{other:?}"),
    }
    keeper.close().await.unwrap();
    // A claim whose commit was waiting is given up first.
    until("it runs", async || matches!(call().await, Ok(0))).await;
    assert_eq!(bodies.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_locked_file_is_no_leave_to_run() {
    is_no_leave_to_run(&InAFile::new(), KEEP).await;
}

#[tokio::test]
async fn a_file_that_somebody_reads_is_no_leave_to_run() {
    let file = InAFile::with(SqliteJournalMode::Delete);
    let read = "BEGIN; SELECT count(*) FROM sqlite_master";
    is_no_leave_to_run(&file, read).await;
}

#[test]
fn a_call_may_outlive_its_runtime() {
    let file = InAFile::new();
    let made = async || file.store().await.limit(Duration::from_secs(20));
    scenes::a_call_may_outlive_its_runtime(made, &async |store: &SqliteStore| {
        store.migrate().await.unwrap();
    });
}

#[tokio::test]
async fn check_names_what_can_lose_records() {
    let file = InAFile::new();
    assert_eq!(codes(&file.store().await).await, ["not_durable"]);
    let full = file.options().synchronous(SqliteSynchronous::Full);
    let full = SqliteStore::new(SqlitePool::connect_with(full).await.unwrap());
    assert!(codes(&full).await.is_empty());
    let unsafe_journal = file.path().with_file_name("other.db");
    let unsafe_journal = file
        .options()
        .filename(unsafe_journal)
        .synchronous(SqliteSynchronous::Full)
        .journal_mode(SqliteJournalMode::Off);
    let unsafe_journal = SqlitePool::connect_with(unsafe_journal).await.unwrap();
    assert_eq!(
        codes(&SqliteStore::new(unsafe_journal)).await,
        ["no_journal", "no_tables"]
    );
    let memory = SqlitePoolOptions::new().max_connections(1);
    let memory = memory.connect("sqlite::memory:").await.unwrap();
    let memory = SqliteStore::new(memory);
    assert_eq!(codes(&memory).await, ["no_persistence", "no_tables"]);
    memory.migrate().await.unwrap();
    assert_eq!(codes(&memory).await, ["no_persistence"]);
}

#[test]
fn runtimes_do_not_depend_on_each_other() {
    let file = InAFile::new();
    scenes::runtimes_do_not_depend_on_each_other(async || {
        let one = SqlitePoolOptions::new().max_connections(1);
        let store = SqliteStore::new(one.connect_with(file.options()).await.unwrap());
        store.migrate().await.unwrap();
        store
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_has_the_whole_pool_keeps_its_lease() {
    let file = InAFile::new();
    file.store().await;
    let one = SqlitePoolOptions::new().max_connections(1);
    let pool = one.connect_with(file.options()).await.unwrap();
    let store = SqliteStore::new(pool.clone());
    scenes::a_body_that_has_the_whole_pool_keeps_its_lease(pool, store).await;
}

/// Where another pool would find no tables, or no way to them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_by_the_only_pool_there_is() {
    let file = InAFile::new();
    let options = SqliteConnectOptions::new();
    for options in [
        SqliteConnectOptions::from_str("sqlite::memory:").unwrap(),
        options.clone().filename(":memory:"),
        options.clone().filename("records").in_memory(true),
        options.clone().filename("file:records?mode=memory"),
        options.clone().filename("file::memory:"),
        file.options().locking_mode(SqliteLockingMode::Exclusive),
        file.options().pragma("locking_mode", "exclusive"),
        options,
    ] {
        let one = SqlitePoolOptions::new().max_connections(1);
        let store = SqliteStore::new(one.connect_with(options).await.unwrap());
        store.migrate().await.unwrap();
        let idem = Idempotency::builder(store).build().unwrap();
        let lease = Duration::from_secs(1);
        let body = async || {
            tokio::time::sleep(lease * 3).await;
            Ok::<_, Error>(1)
        };
        let policy = Policy::new().lease(lease).rerun_abandoned();
        let kept = idem
            .run(Key::new("order", "1").unwrap(), policy, body)
            .await;
        assert_eq!(kept.unwrap(), 1);
    }
}

/// The store waits no longer, and its commit is done when the reader has gone.
#[tokio::test]
async fn a_commit_that_was_given_up_leaves_its_connection_as_good_as_any() {
    const LIMIT: Duration = Duration::from_millis(200);
    /// How long at most the store goes on with what it has begun, by its documentation.
    const PATIENCE: Duration = Duration::from_secs(2);
    let file = InAFile::with(SqliteJournalMode::Delete);
    let one = SqlitePoolOptions::new().max_connections(1);
    let pool = one.connect_with(file.options()).await.unwrap();
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.unwrap();
    let mut reader = file.options().connect().await.unwrap();
    let read = sqlx::raw_sql("BEGIN; SELECT count(*) FROM idempotent_record");
    read.execute(&mut reader).await.unwrap();
    let (hurried, now) = (store.clone().limit(LIMIT), store.now().await.unwrap());
    let given_up = hurried
        .claim(&key("read", "1"), &claim(1, now, TERMS))
        .await;
    given_up.unwrap_err();
    tokio::time::sleep(PATIENCE + LIMIT).await;
    reader.close().await.unwrap();
    for number in 2..5 {
        finish(&store, &key("read", &number.to_string()), number, TERMS).await;
        let mut tx = pool.begin_with(KEEP).await.unwrap();
        sqlx::raw_sql("SELECT 1").execute(&mut *tx).await.unwrap();
        tx.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn a_version_is_written_once() {
    let file = InAFile::new();
    file.fresh_store().await;
    let again =
        "INSERT INTO idempotent_record_version SELECT version FROM idempotent_record_version";
    let written = sqlx::raw_sql(again).execute(&file.pool().await).await;
    written.unwrap_err();
}

/// Whoever had it before did not see that the disk was full, or left a transaction open.
#[tokio::test]
async fn a_connection_is_of_use_whatever_was_left_on_it() {
    let file = InAFile::new();
    let one = SqlitePoolOptions::new().max_connections(1);
    let pool = one.connect_with(file.options()).await.unwrap();
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.unwrap();
    for (number, left) in (1..).zip([
        "ROLLBACK",
        "ROLLBACK; SAVEPOINT _sqlx_savepoint_2",
        "SELECT 1",
    ]) {
        let mut tx = pool.begin_with(KEEP).await.unwrap();
        let mut deeper = tx.begin().await.unwrap();
        sqlx::raw_sql(left).execute(&mut *deeper).await.unwrap();
        std::mem::forget(deeper);
        drop(tx);
        finish(&store, &key("left", &number.to_string()), number, TERMS).await;
    }
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM idempotent_record")
        .fetch_one(&mut file.options().connect().await.unwrap())
        .await
        .unwrap();
    assert_eq!(kept, 3);
}

/// SQLite then rolls back by itself, and sqlx would go on counting a transaction.
#[tokio::test]
async fn behind_a_full_disk_connections_are_as_good_as_any() {
    let file = InAFile::new();
    let one = SqlitePoolOptions::new().max_connections(1);
    let pool = one.connect_with(file.options()).await.unwrap();
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.unwrap();
    let room = async |pages: u32| {
        let room = sqlx::raw_sql(AssertSqlSafe(format!("PRAGMA max_page_count = {pages}")));
        room.execute(&pool).await.unwrap();
    };
    for round in 0..2 {
        // Not less than there is.
        room(1).await;
        let mut number = round * 1_000;
        let refused = loop {
            number += 1;
            let (key, now) = (key("full", &number.to_string()), store.now().await.unwrap());
            if let Err(refused) = store.claim(&key, &claim(number, now, TERMS)).await {
                break refused;
            }
        };
        assert_eq!(refused.kind(), StoreErrorKind::Refused, "{refused}");
        room(1_000_000).await;
        finish(&store, &key("room", &number.to_string()), number, TERMS).await;
    }
}
