//! PostgreSQL.

mod purge;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use idem_core::conformance::Harness;
use idem_core::record::{Issue, Subject};
use idem_core::store::{PostgresStore, Store};
use idem_core::{Error, Idempotency, Key, Policy, StoreErrorKind};
use idem_tests::attempt::{TERMS, claim, codes, finish, key};
use idem_tests::database::{Aside, Database, OnPostgres, locked, rows, scenes};
use idem_tests::long::operations;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::history;
use crate::stands::stands;

stands!(OnPostgres);

mod at_read_committed {
    use super::*;

    idem_core::conformance_tests!(OnPostgres::shared("read committed"));

    // CASES E11
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        let database = OnPostgres::shared("read committed");
        history::is_the_specification("PostgreSQL", database, operations(10_000)).await;
    }
}

mod at_repeatable_read {
    use super::*;

    idem_core::conformance_tests!(OnPostgres::shared("repeatable read"));

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        history::is_the_specification(
            "PostgreSQL at repeatable read",
            OnPostgres::shared("repeatable read"),
            history::AT_ANOTHER_LEVEL,
        )
        .await;
    }
}

mod at_serializable {
    use super::*;

    idem_core::conformance_tests!(OnPostgres::shared("serializable"));

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_random_history_is_the_specification() {
        history::is_the_specification(
            "PostgreSQL at serializable",
            OnPostgres::shared("serializable"),
            history::AT_ANOTHER_LEVEL,
        )
        .await;
    }
}

/// The session lets no statement run for as long as the store would wait for a lock.
#[tokio::test]
async fn a_locked_row_is_no_leave_to_run_for_a_session_in_a_hurry() {
    let database = OnPostgres::empty().await;
    database.fresh_store().await;
    let hurried = database.options().options([("statement_timeout", "200ms")]);
    let store = PostgresStore::new(PgPool::connect_with(hurried).await.unwrap());
    locked::is_no_leave_to_run(&database, store).await;
}

/// The look at a token and the lock of its row have one wait: an engine gives up after half of the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_with_a_token_waits_no_longer_than_one_without() {
    const LIMIT: Duration = Duration::from_secs(4);
    let database = OnPostgres::empty().await;
    database.fresh_store().await;
    let pool = PgPoolOptions::new().max_connections(1);
    let pool = pool.connect_with(database.options()).await.unwrap();
    let store = PostgresStore::new(pool.clone()).limit(LIMIT);
    let (key, subject) = (key("token", "busy"), Subject::of("alice"));
    let now = store.now().await.unwrap();
    let issue = Issue {
        subject,
        ttl: TERMS.expire,
        not_after: now.after(LIMIT * 4),
    };
    store.issue(&key, &issue).await.unwrap();
    let mut claim = claim(1, now, TERMS);
    claim.token = Some(subject);

    // Two others have the only connection in turn: before the look, and between it and the lock.
    let first = pool.acquire().await.unwrap();
    let begin = Instant::now();
    let others = async {
        tokio::time::sleep(LIMIT / 20).await;
        let second = async {
            let second = pool.acquire().await.unwrap();
            tokio::time::sleep(LIMIT * 3 / 10).await;
            drop(second);
        };
        let first = async {
            tokio::time::sleep(LIMIT / 4).await;
            drop(first);
        };
        tokio::join!(second, first)
    };
    let asks = async { (store.claim(&key, &claim).await, begin.elapsed()) };
    let ((told, waited), _) = tokio::join!(asks, others);
    let told = told.unwrap_err();
    assert_eq!(told.kind(), StoreErrorKind::Conflict, "{told}");
    assert!(told.is_before_sending() && waited < LIMIT / 2, "{waited:?}");
}

/// Other work of the program has the whole pool, for longer than the store waits for an answer: that
/// says nothing of the database, which knows that the body has run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_in_other_hands_is_no_leave_to_run() {
    const LIMIT: Duration = Duration::from_secs(2);
    let database = OnPostgres::empty().await;
    database.fresh_store().await;
    let pool = PgPoolOptions::new().max_connections(2);
    let pool = pool.connect_with(database.options()).await.unwrap();
    let store = PostgresStore::new(pool.clone()).limit(LIMIT);
    let idem = Idempotency::builder(store).build().unwrap();
    let bodies = AtomicU32::new(0);
    let call = || {
        let key = Key::new("order", "1").unwrap();
        idem.run(key, Policy::new().run_on_store_error(), async || {
            Ok::<_, Error>(bodies.fetch_add(1, Ordering::SeqCst))
        })
    };
    assert_eq!(call().await.unwrap(), 0);
    let taken = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    tokio::time::sleep(LIMIT).await;
    match call().await {
        Err(Error::Store { source, .. }) => {
            assert_eq!(source.kind(), StoreErrorKind::Conflict, "{source}");
        }
        other => panic!("{other:?}"),
    }
    drop(taken);
    assert_eq!(call().await.unwrap(), 0);
    assert_eq!(bodies.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_has_the_whole_pool_keeps_its_lease() {
    let database = OnPostgres::empty().await;
    database.fresh_store().await;
    let one = PgPoolOptions::new().max_connections(1);
    let pool = one.connect_with(database.options()).await.unwrap();
    let store = PostgresStore::new(pool.clone());
    scenes::a_body_that_has_the_whole_pool_keeps_its_lease(pool, store).await;
}

#[tokio::test]
async fn connections_that_only_read_are_given_up() {
    const MOST: u32 = 2;
    let database = OnPostgres::empty().await;
    database.fresh_store().await;
    let pool = PgPoolOptions::new().max_connections(MOST);
    let pool = pool.connect_with(database.options()).await.unwrap();
    let mut all = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    for session in &mut all {
        let set = sqlx::raw_sql("SET default_transaction_read_only = on");
        set.execute(&mut **session).await.unwrap();
    }
    drop(all);
    let store = PostgresStore::new(pool);
    scenes::connections_that_only_read_are_given_up(&store, MOST).await;
}

#[tokio::test]
async fn check_names_what_can_lose_records() {
    let database = OnPostgres::empty().await;
    let store = database.fresh_store().await;
    assert_eq!(codes(&store).await, ["no_fsync"]);
    let hasty = database.options().options([("synchronous_commit", "off")]);
    let hasty = PostgresStore::new(PgPool::connect_with(hasty).await.unwrap());
    assert_eq!(codes(&hasty).await, ["not_durable", "no_fsync"]);
    let careless = "ALTER TABLE idempotent_record SET UNLOGGED";
    database.aside().await.run(careless).await;
    assert_eq!(codes(&store).await, ["no_fsync", "no_persistence"]);
}

#[tokio::test]
async fn check_names_a_function_that_was_not_copied() {
    let database = OnPostgres::empty().await;
    let store = database.fresh_store().await;
    let gone = "DROP FUNCTION idempotent_enter_2";
    database.aside().await.run(gone).await;
    assert_eq!(codes(&store).await, ["no_fsync", "no_function"]);
    store.migrate().await.unwrap();
    assert_eq!(codes(&store).await, ["no_fsync"]);
}

/// The tables are an older version's, and leases need no more.
#[tokio::test]
async fn who_may_not_make_the_function_of_a_newer_version_goes_on_without_it() {
    let database = OnPostgres::empty().await;
    let store = database.fresh_store().await;
    database
        .aside()
        .await
        .run(
            "DROP FUNCTION idempotent_enter_2; \
             REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE clerk LOGIN; \
             GRANT ALL ON idempotent_record, idempotent_record_version TO clerk",
        )
        .await;
    let clerk = database.options().username("clerk");
    let clerk = PostgresStore::new(PgPool::connect_with(clerk).await.unwrap());
    for _ in 0..2 {
        clerk.migrate().await.unwrap();
        assert_eq!(codes(&clerk).await, ["no_fsync", "no_function"]);
    }
    finish(&clerk, &key("clerk", "1"), 1, TERMS).await;
    store.migrate().await.unwrap();
    assert_eq!(codes(&store).await, ["no_fsync"]);
}

#[tokio::test]
async fn check_names_a_function_that_its_user_may_not_run() {
    let database = OnPostgres::empty().await;
    let store = database.fresh_store().await;
    let mut aside = database.aside().await;
    aside
        .run(
            "CREATE ROLE teller LOGIN; \
             GRANT ALL ON idempotent_record, idempotent_record_version TO teller; \
             REVOKE EXECUTE ON FUNCTION idempotent_enter_2 FROM PUBLIC",
        )
        .await;
    assert_eq!(codes(&store).await, ["no_fsync"]);
    let teller = database.options().username("teller");
    let teller = PostgresStore::new(PgPool::connect_with(teller).await.unwrap());
    assert_eq!(codes(&teller).await, ["no_fsync", "no_function"]);
    let grant = "GRANT EXECUTE ON FUNCTION idempotent_enter_2 TO teller";
    aside.run(grant).await;
    assert_eq!(codes(&teller).await, ["no_fsync"]);
}
