//! Purging a table that nobody has purged for long.

use std::time::Duration;

use idem_core::conformance::Harness;
use idem_core::store::PostgresStore;
use idem_tests::attempt::{TERMS, finish, key};
use idem_tests::database::{Aside, Database, OnPostgres};
use idem_tests::long::is_long;
use sqlx::{PgConnection, PgPool};

use crate::backlog;

/// What is measured is how long calls take, not that they give up.
const PATIENT: Duration = Duration::from_secs(10);

// CASES Q11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_backlog_goes_in_batches_beside_live_calls_and_none_reads_the_whole_table() {
    let rows: u64 = if is_long() { 1_000_000 } else { 100_000 };
    let database = OnPostgres::empty().await;
    let pools = [database.pool().await, database.pool().await];
    let stores = pools
        .each_ref()
        .map(|pool| PostgresStore::new(pool.clone()).limit(PATIENT));
    stores[0].migrate().await.unwrap();
    let (aside, purge) = (database.aside().await, OnPostgres::purge);
    let backlog = (rows, copies(rows));
    let purged =
        backlog::goes_in_batches_beside_live_calls("PostgreSQL", aside, stores, purge, backlog);
    let calls = purged.await;
    for pool in pools {
        pool.close().await;
    }
    let read = whole_reads(&mut database.aside().await).await;
    // What the test itself asks may.
    assert!(
        read * 10 < calls,
        "{read} of {calls} purges read the whole table"
    );
}

/// Also where the planner would rather look for the batch anew for each row.
#[tokio::test]
async fn a_purge_deletes_no_more_than_its_batch_by_any_plan() {
    const PLANS: [&str; 5] = [
        "enable_hashjoin",
        "enable_mergejoin",
        "enable_hashagg",
        "enable_material",
        "enable_sort",
    ];
    let database = OnPostgres::empty().await;
    let store = database.fresh_store().await;
    finish(&store, &key("live", "sample"), 0, TERMS).await;
    let mut aside = database.aside().await;
    aside.run("ANALYZE idempotent_record").await;
    aside.run(&copies(10_000)).await;
    let other_plans = database.options().options(PLANS.map(|plan| (plan, "off")));
    let pool = PgPool::connect_with(other_plans).await.unwrap();
    let store = PostgresStore::new(pool).limit(PATIENT);
    assert_eq!(store.purge(10).await.unwrap(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_that_locks_the_table_is_found_out() {
    let lock = "BEGIN; LOCK TABLE idempotent_record IN ACCESS EXCLUSIVE MODE";
    let database = OnPostgres::empty().await;
    let store = OnPostgres::limited(&database.fresh_store().await, Duration::from_mins(1));
    let aside = database.aside().await;
    backlog::a_purge_that_locks_the_table_is_found_out(store, aside, [lock, "COMMIT"]).await;
}

/// So many rows that are over, otherwise like the sample.
fn copies(count: u64) -> String {
    format!(
        "INSERT INTO idempotent_record \
         SELECT sha256(convert_to('over ' || n, 'UTF8')), 'shop:over', n::text, request_id, \
         status, fence, attempt, fingerprint, checkpoint, lease_until, response_data, n, record, \
         create_time, update_time \
         FROM idempotent_record, generate_series(1, {count}) AS n WHERE business_key = 'sample'"
    )
}

/// How often the table was read from end to end. Sessions report what they did when they end.
async fn whole_reads(aside: &mut PgConnection) -> u64 {
    const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                          AND datname = current_database() AND pid <> pg_backend_pid()";
    const READ: &str = "SELECT seq_scan FROM pg_stat_user_tables \
                        WHERE relname = 'idempotent_record'";
    while aside.count(OTHERS).await > 0 {
        tokio::task::yield_now().await;
    }
    aside.count(READ).await.try_into().unwrap()
}
