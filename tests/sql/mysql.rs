//! MariaDB, as a server of the MySQL protocol.

use std::time::Duration;

use idem_core::StoreErrorKind;
use idem_core::conformance::Harness;
use idem_core::record::Slot;
use idem_core::store::{MySqlStore, Store};
use idem_tests::attempt::{TERMS, codes, finish, key};
use idem_tests::changed_rows::{counting_changed_rows, is_counting_them};
use idem_tests::database::{Aside, Database, OnMariaDb, locked, mariadb, rows, scenes};
use idem_tests::long::{is_long, operations};
use idem_tests::mariadb::MariaDbServer;
use sqlx::{MySqlPool, Row};

use crate::stands::stands;
use crate::{backlog, history};

stands!(OnMariaDb);

mod at_read_committed {
    use super::*;

    idem_core::conformance_tests!(OnMariaDb::shared("READ COMMITTED"));

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        history::is_the_specification(
            "MariaDB at read committed",
            OnMariaDb::shared("READ COMMITTED"),
            history::AT_ANOTHER_LEVEL,
        )
        .await;
    }
}

mod at_repeatable_read {
    use super::*;

    idem_core::conformance_tests!(OnMariaDb::shared("REPEATABLE READ"));

    // CASES E11
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        let database = OnMariaDb::shared("REPEATABLE READ");
        history::is_the_specification("MariaDB", database, operations(10_000)).await;
    }
}

mod without_autocommit {
    use super::*;

    idem_core::conformance_tests!(OnMariaDb::without_autocommit());
}

mod at_serializable {
    use super::*;

    idem_core::conformance_tests!(OnMariaDb::shared("SERIALIZABLE"));

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        history::is_the_specification(
            "MariaDB at serializable",
            OnMariaDb::shared("SERIALIZABLE"),
            history::AT_ANOTHER_LEVEL,
        )
        .await;
    }
}

#[tokio::test]
async fn a_migration_that_was_killed_half_way_is_finished() {
    let database = OnMariaDb::empty().await;
    let half = "CREATE TABLE idempotent_record_version (version BIGINT NOT NULL PRIMARY KEY)";
    database.aside().await.run(half).await;
    let store = database.fresh_store().await;
    finish(&store, &key("order", "1"), 1, TERMS).await;
}

/// Whose defaults are not those that most servers have.
#[tokio::test]
async fn a_server_of_compact_rows_that_commits_nothing_by_itself_is_served() {
    let options = &["--innodb-default-row-format=compact", "--autocommit=0"];
    let server = MariaDbServer::start_with(options).unwrap();
    let store = MySqlStore::new(MySqlPool::connect(&server.url()).await.unwrap());
    store.migrate().await.unwrap();
    let (key, other) = (
        key("order", "1"),
        MySqlStore::new(MySqlPool::connect(&server.url()).await.unwrap()),
    );
    assert_eq!(other.peek(&key).await.unwrap().reply, Slot::Absent);
    finish(&store, &key, 1, TERMS).await;
    let seen = other.peek(&key).await.unwrap().reply;
    assert!(matches!(seen, Slot::Record(_)), "{seen:?}");
}

/// MariaDB can be told that an empty text is NULL.
#[tokio::test]
async fn a_session_without_empty_texts_is_served() {
    let database = OnMariaDb::empty().await;
    database.fresh_store().await;
    let pool = database.pool(1).await;
    let mode = "SET sql_mode = CONCAT(@@sql_mode, ',EMPTY_STRING_IS_NULL')";
    sqlx::raw_sql(mode).execute(&pool).await.unwrap();
    let store = MySqlStore::new(pool);
    finish(&store, &key("order", "1"), 1, TERMS).await;
}

#[tokio::test]
async fn a_connection_that_was_left_in_a_transaction_is_of_use() {
    mariadb::a_connection_that_was_left_in_a_transaction_is_of_use(&OnMariaDb::empty().await).await;
}

#[tokio::test]
async fn a_migration_is_committed_in_a_session_without_autocommit() {
    let database = OnMariaDb::empty().await;
    mariadb::a_migration_is_committed_in_a_session_without_autocommit(&database).await;
}

#[tokio::test]
async fn a_call_that_writes_is_at_read_committed() {
    mariadb::a_call_that_writes_is_at_read_committed(&OnMariaDb::empty().await).await;
}

/// What a look that was refused had set for its own transaction is not there for the next one.
#[tokio::test]
async fn a_session_whose_look_is_refused_may_write_on() {
    let pool = OnMariaDb::empty().await.pool(1).await;
    let written = "CREATE TABLE written (number INT) ENGINE = InnoDB";
    sqlx::raw_sql(written).execute(&pool).await.unwrap();
    let store = MySqlStore::new(pool.clone());
    for number in 0..2 {
        let no_tables = store.peek(&key("look", "1")).await.unwrap_err();
        assert_eq!(no_tables.kind(), StoreErrorKind::Misconfigured);
        let insert = sqlx::query("INSERT INTO written VALUES (?)").bind(number);
        insert.execute(&pool).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_gets_its_own_patience_back() {
    mariadb::a_session_gets_its_own_patience_back(&OnMariaDb::empty().await).await;
}

#[tokio::test]
async fn a_session_whose_call_is_refused_gets_its_own_patience_back() {
    let database = OnMariaDb::empty().await;
    mariadb::a_session_whose_call_is_refused_gets_its_own_patience_back(&database).await;
}

#[tokio::test]
async fn connections_that_only_read_are_given_up() {
    const MOST: u32 = 2;
    let database = OnMariaDb::empty().await;
    database.fresh_store().await;
    let pool = database.pool(MOST).await;
    let mut all = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    for session in &mut all {
        let set = sqlx::raw_sql("SET SESSION TRANSACTION READ ONLY");
        set.execute(&mut **session).await.unwrap();
    }
    drop(all);
    let store = MySqlStore::new(pool);
    scenes::connections_that_only_read_are_given_up(&store, MOST).await;
}

/// More than a statement of MySQL has parameters.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_any_size_deletes_a_backlog() {
    const BACKLOG: u64 = 70_000;
    let database = OnMariaDb::empty().await;
    let store = database.fresh_store().await;
    finish(&store, &key("live", "sample"), 1, TERMS).await;
    let mut aside = database.aside().await;
    aside.run(&copies(BACKLOG)).await;
    let store = OnMariaDb::limited(&store, Duration::from_mins(1));
    let mut deleted = 0;
    loop {
        match store.purge(u32::MAX).await.unwrap() {
            0 => break,
            some => deleted += some,
        }
    }
    assert_eq!(deleted, BACKLOG);
    let left = "SELECT count(*) FROM idempotent_record";
    assert_eq!(aside.count(left).await, 1);
}

#[tokio::test]
async fn a_purge_leaves_no_statement_of_its_size_in_the_session() {
    const KEPT: &str = "SELECT CAST(SUM(IF(variable_name = 'COM_STMT_PREPARE', variable_value, \
         -variable_value)) AS SIGNED) FROM information_schema.session_status \
         WHERE variable_name IN ('COM_STMT_PREPARE', 'COM_STMT_CLOSE')";
    let database = OnMariaDb::empty().await;
    let pool = database.pool(1).await;
    let store = MySqlStore::new(pool.clone());
    store.migrate().await.unwrap();
    finish(&store, &key("live", "sample"), 1, TERMS).await;
    database.aside().await.run(&copies(20)).await;
    let mut kept = Vec::new();
    for size in 1..=4 {
        assert_eq!(store.purge(size).await.unwrap(), u64::from(size));
        let row = sqlx::raw_sql(KEPT).fetch_one(&pool).await.unwrap();
        kept.push(row.get::<i64, _>(0));
    }
    assert!(kept.iter().all(|count| *count == kept[0]), "{kept:?}");
}

/// So many rows that are over, otherwise like the sample.
fn copies(count: u64) -> String {
    format!(
        "INSERT INTO idempotent_record SELECT UNHEX(SHA2(CONCAT('over ', seq), 256)), \
         'shop:over', seq, request_id, status, fence, attempt, fingerprint, checkpoint, \
         lease_until, response_data, seq, record, create_time, update_time \
         FROM idempotent_record, seq_1_to_{count} WHERE business_key = 'sample'"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_has_the_whole_pool_keeps_its_lease() {
    let database = OnMariaDb::empty().await;
    database.fresh_store().await;
    let pool = database.pool(1).await;
    let store = MySqlStore::new(pool.clone());
    scenes::a_body_that_has_the_whole_pool_keeps_its_lease(pool, store).await;
}

// CASES N17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_only_changed_rows_are_counted_decides_nothing() {
    let database = OnMariaDb::empty().await;
    let port = counting_changed_rows(database.address().port()).await;
    let database = database.behind(port);
    let store = database.fresh_store().await;
    let mut connection = database.pool(1).await.acquire().await.unwrap();
    assert!(is_counting_them(&mut connection).await);
    rows::what_changes_nothing_leaves_no_row(&database).await;
    rows::a_row_inserted_meanwhile_is_seen(&database).await;
    locked::a_locked_row_is_told_as_it_is_committed(&database).await;
    scenes::a_storm_on_few_keys_grants_each_once(&[store, database.fresh_store().await]).await;
    let name = "MariaDB, where only changed rows are counted";
    history::is_the_specification(name, database, operations(2_000)).await;
}

// CASES Q11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_backlog_goes_in_batches_beside_live_calls() {
    let rows = if is_long() { 1_000_000 } else { 100_000 };
    let database = OnMariaDb::empty().await;
    let stores = [database.fresh_store().await, database.fresh_store().await];
    let (aside, purge) = (database.aside().await, OnMariaDb::purge);
    let backlog = (rows, copies(rows));
    backlog::goes_in_batches_beside_live_calls("MariaDB", aside, stores, purge, backlog).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_that_locks_the_table_is_found_out() {
    let lock = "LOCK TABLES idempotent_record WRITE";
    let database = OnMariaDb::empty().await;
    let store = OnMariaDb::limited(&database.fresh_store().await, Duration::from_mins(1));
    let aside = database.aside().await;
    backlog::a_purge_that_locks_the_table_is_found_out(store, aside, [lock, "UNLOCK TABLES"]).await;
}

#[tokio::test]
async fn check_names_what_can_lose_records() {
    let database = OnMariaDb::empty().await;
    let store = database.fresh_store().await;
    assert_eq!(codes(&store).await, ["not_durable"]);
    let careless = OnMariaDb::shared("READ UNCOMMITTED").fresh_store().await;
    assert_eq!(codes(&careless).await, ["not_durable", "read_uncommitted"]);
    let unsafe_engine = "ALTER TABLE idempotent_record ENGINE = Aria";
    database.aside().await.run(unsafe_engine).await;
    assert_eq!(codes(&store).await, ["no_transactions", "not_durable"]);
}
