//! Purging a table that nobody has purged for long.

use std::sync::atomic::{AtomicU64, Ordering};

use idem_core::record::Slot;
use idem_core::store::{PostgresStore, Store};
use idem_tests::attempt::{TERMS, finish, key};
use idem_tests::database::{Aside, Database, OnPostgres};
use idem_tests::long::is_long;
use sqlx::{AssertSqlSafe, PgConnection};

const BATCH: u32 = 1000;

// CASES Q11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_backlog_goes_in_batches_beside_live_calls_and_none_reads_the_whole_table() {
    let backlog: u64 = if is_long() { 1_000_000 } else { 100_000 };
    let database = OnPostgres::empty().await;
    let ours = database.pool().await;
    let store = PostgresStore::new(ours.clone());
    store.migrate().await.unwrap();
    let mut aside = database.aside().await;
    finish(&store, &key("live", "sample"), 1, TERMS).await;
    aside.run(&copies(backlog)).await;
    let before = whole_reads(&mut aside, 0).await;

    let calls = AtomicU64::new(0);
    let purge = async || {
        let mut sum = 0;
        loop {
            calls.fetch_add(1, Ordering::Relaxed);
            match store.purge(BATCH).await.unwrap() {
                0 => return sum,
                deleted => {
                    assert!(deleted <= u64::from(BATCH));
                    sum += deleted;
                }
            }
        }
    };
    let live = async {
        for number in 2..200 {
            finish(&store, &key("live", &number.to_string()), number, TERMS).await;
        }
    };
    let (first, second, ()) = tokio::join!(purge(), purge(), live);
    assert_eq!(first + second, backlog);
    for number in 2..200 {
        let key = key("live", &number.to_string());
        let live = store.peek(&key).await.unwrap().reply;
        assert!(matches!(live, Slot::Record(_)), "{number}");
    }

    ours.close().await;
    let calls = calls.into_inner();
    let read = whole_reads(&mut aside, calls).await - before;
    assert!(read < 5, "{read} of {calls} purges read the whole table");
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

/// How often the table was read from end to end, once it is known to have been looked up as often
/// as `lookups`. Sessions report what they did when they end.
async fn whole_reads(aside: &mut PgConnection, lookups: u64) -> i64 {
    const READ: &str = "SELECT coalesce(idx_scan, 0), seq_scan FROM pg_stat_user_tables \
                        WHERE relname = 'idempotent_record'";
    loop {
        let counted = sqlx::query_as(AssertSqlSafe(READ.to_owned()));
        let (looked_up, read): (i64, i64) = counted.fetch_one(&mut *aside).await.unwrap();
        if u64::try_from(looked_up).is_ok_and(|looked_up| looked_up >= lookups) {
            return read;
        }
        tokio::task::yield_now().await;
    }
}
