//! Locks over a PostgreSQL server: what is left in it.

use std::time::Duration;

use idem_core::conformance::Harness;
use idem_core::{Idempotency, Key};
use idem_tests::database::{Aside, Database, OnPostgres};
use idem_tests::faulty::{Faulty, Verb};
use tokio::task::JoinSet;

use crate::rig::LEASE;

// L02, E13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quick_pairs_leave_no_renewal_and_no_row_but_marks_that_expire() {
    const LIMIT: Duration = Duration::from_secs(5);
    const TASKS: i64 = 8;
    const KEYS: i64 = 10;
    const PAIRS: i64 = 10_000;
    let database = OnPostgres::empty().await;
    let store = Faulty::new(database.fresh_store().await);
    let idem = Idempotency::builder(store.clone()).limit(LIMIT);
    let idem = idem.build().unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let idem = idem.clone();
        tasks.spawn(async move {
            for number in 0..PAIRS / TASKS {
                let key = Key::new("quick", (task, number % KEYS)).unwrap();
                let lock = idem.lock(key).lease(LEASE).acquire().await.unwrap();
                lock.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    // Only by its sending is it seen: where the lock has been released it writes nothing.
    let renewals = store.calls(Verb::Renew);
    tokio::time::sleep(LEASE).await;
    assert_eq!(store.calls(Verb::Renew), renewals, "somebody renews");
    assert_eq!(idem.drain(LIMIT).await, 0);

    let mut aside = database.aside().await;
    let mut count = async |what: &str| {
        let count = format!("SELECT {what} FROM idempotent_record");
        aside.count(&count).await
    };
    assert!(idem.records("").await.unwrap().is_empty());
    assert_eq!(
        count("count(*)").await,
        TASKS * KEYS,
        "one mark for each key"
    );
    let mark = LEASE.max(LIMIT * 2).as_micros();
    let longer = format!(
        "count(*) FILTER (WHERE \
         expire_at > extract(epoch FROM clock_timestamp()) * 1000000 + {mark})"
    );
    assert_eq!(count(&longer).await, 0);
}
