//! SQLite, in a file of a temporary folder.

use std::time::Duration;

use idem_core::store::SqliteStore;
use idem_core::{Error, Idempotency, Key, Outcome, Policy, StoreErrorKind, observe};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Connection, Sqlite, SqliteConnection, SqlitePool, Transaction};

use crate::base::{Base, Place};
use crate::concurrent::{fence_in, rolled_back_late};
use crate::isolation::code;
use crate::settle_in::longer_than_its_lease;
use crate::shop::{Then, pay, refusal};

impl Base for Sqlite {
    type Store = SqliteStore;

    fn store(pool: &SqlitePool) -> SqliteStore {
        SqliteStore::new(pool.clone())
    }

    async fn place() -> Place<Self> {
        let folder = tempfile::Builder::new().prefix("idem-sqlite-").tempdir();
        let folder = folder.unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("shop.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal);
        let pool = SqlitePoolOptions::new().max_connections(4);
        let pool = pool.connect_with(options).await.unwrap();
        let store = SqliteStore::new(pool.clone());
        store.migrate().await.unwrap();
        let effect = sqlx::raw_sql("CREATE TABLE effect (number BIGINT NOT NULL)");
        effect.execute(&pool).await.unwrap();
        let leases = Idempotency::builder(store).build().unwrap();
        Place::new(pool, leases, Some(folder))
    }

    async fn begin(pool: &SqlitePool) -> Transaction<'static, Self> {
        pool.begin_with("BEGIN IMMEDIATE").await.unwrap()
    }

    async fn add(connection: &mut SqliteConnection, number: i64) -> sqlx::Result<()> {
        let insert = sqlx::query("INSERT INTO effect VALUES (?1)").bind(number);
        insert.execute(connection).await.map(drop)
    }

    async fn effects(pool: &SqlitePool) -> Vec<i64> {
        let all = sqlx::query_scalar("SELECT number FROM effect ORDER BY number");
        all.fetch_all(pool).await.unwrap()
    }

    async fn clear(pool: &SqlitePool) {
        let clear = sqlx::raw_sql("DELETE FROM effect").execute(pool);
        clear.await.unwrap();
    }

    /// A file tells nobody who waits for it.
    async fn waiting(_: &SqlitePool) -> i64 {
        0
    }

    async fn patience(connection: &mut SqliteConnection) -> String {
        let patience: i64 = sqlx::query_scalar("PRAGMA busy_timeout")
            .fetch_one(connection)
            .await
            .unwrap();
        patience.to_string()
    }
}

crate::scenes! { Sqlite:
    once::{
        a_body_runs_once_and_is_replayed,
        a_duplicate_in_the_same_transaction_is_replayed,
        a_rollback_frees_the_key,
        a_duplicate_leaves_the_transaction_usable,
        an_error_that_is_final_is_replayed_without_its_effect,
        the_form_for_programs_does_the_same,
        a_record_ends_when_its_time_is_over,
        a_record_that_is_replaced_leaves_others_as_they_are,
        a_body_may_take_longer_than_its_record_lives,
        a_body_whose_last_act_is_another_call_keeps_both,
        of_many_calls_in_one_transaction_each_keeps_its_own,
    },
    half::{
        a_body_that_fails_at_its_end_and_is_retried_has_one_effect,
        a_body_that_panics_leaves_nothing,
        a_body_that_is_dropped_leaves_nothing,
        a_time_out_around_the_call_leaves_nothing,
        a_call_that_is_dropped_anywhere_leaves_all_or_nothing,
        a_call_that_is_dropped_anywhere_leaves_what_was_done_after_a_failed_one,
        a_call_without_an_effect_that_is_dropped_anywhere_leaves_what_is_around_it,
        a_body_within_its_own_body_has_no_second_effect,
        a_body_within_its_own_body_further_out_has_no_second_effect,
        an_error_takes_back_what_a_body_in_the_body_recorded,
    },
    concurrent::{
        of_a_crowd_each_key_has_one_effect,
    },
    astray::{
        a_body_whose_begin_is_dropped_keeps_nothing,
        a_body_without_a_key_whose_begin_is_dropped_keeps_nothing,
        a_body_deeper_down_whose_begin_is_dropped_keeps_nothing,
        a_body_that_leaves_a_begin_open_keeps_nothing,
    },
    lease::{
        a_live_attempt_is_in_progress,
        a_failed_attempt_is_retried_and_what_it_gives_is_replayed_there,
        an_attempt_that_was_dropped_is_held,
    },
    settle_in::{
        effect_and_success_are_one_transaction,
        a_body_that_is_dropped_after_its_commit_has_succeeded,
        a_forgotten_success_is_told_although_the_next_call_runs,
        a_duplicate_is_told_of_it_before_the_commit,
        a_foreign_token_is_an_unknown_one_before_the_commit_too,
        after_a_rollback_the_error_says_how_the_record_ends,
        the_effects_of_a_stale_owner_roll_back_with_it,
        who_was_taken_over_when_its_lease_lapsed_is_told_and_rolls_back,
        a_record_that_is_kept_elsewhere_is_not_settled_here,
        a_body_with_tx_has_nothing_to_settle,
    },
    payloads::{
        another_payload_is_refused_and_the_first_is_replayed,
        a_payload_that_was_rolled_back_binds_nobody,
    },
    refused::{
        a_try_that_comes_after_its_cancel_is_refused,
        a_cancel_that_comes_after_its_try_is_told,
        a_try_that_was_rolled_back_can_be_cancelled,
    },
    by_hand::{
        a_body_that_writes_its_record_itself_is_told_and_nothing_is_kept,
    },
}

async fn refused_as_busy(place: &Place<Sqlite>, tx: &mut Transaction<'_, Sqlite>) {
    let refused = refusal(pay(place, tx, 1, Then::End).await);
    let Error::Store { source } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(source.kind(), StoreErrorKind::Conflict);
    assert!(refused.is_retryable());
    assert_eq!(
        code(&refused).parse::<u32>().unwrap() & 0xff,
        5,
        "{refused}"
    );
    assert_eq!(place.bodies.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_read_too_early_is_told_before_its_body_runs() {
    let place = Sqlite::place().await;
    let mut early = place.pool.begin().await.unwrap();
    let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM effect")
        .fetch_one(&mut *early)
        .await
        .unwrap();
    assert_eq!(seen, 0);
    let mut other = place.begin().await;
    Sqlite::add(&mut other, 7).await.unwrap();
    other.commit().await.unwrap();
    refused_as_busy(&place, &mut early).await;
    early.rollback().await.unwrap();
    let mut tx = place.begin().await;
    pay(&place, &mut tx, 1, Then::End).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 7]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_somebody_keeps_is_waited_for_as_long_as_the_connection_says() {
    let place = Sqlite::place().await;
    let keeper = place.begin().await;
    let mut late = place.pool.acquire().await.unwrap();
    let brief = sqlx::raw_sql("PRAGMA busy_timeout = 50");
    brief.execute(&mut *late).await.unwrap();
    let mut late = late.begin().await.unwrap();
    let asked = std::time::Instant::now();
    refused_as_busy(&place, &mut late).await;
    assert!(asked.elapsed() < Duration::from_secs(4));
    keeper.rollback().await.unwrap();
    pay(&place, &mut late, 1, Then::End).await.unwrap();
    late.commit().await.unwrap();
    assert_eq!(place.effects().await, [1]);
}

// N34
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_waited_for_the_file_counts_its_time_from_then_on() {
    let place = Sqlite::place().await;
    let keeper = place.begin().await;
    // Asks for the file when it asks for its key.
    let late = place.pool.begin().await.unwrap();
    let (fence, rolled_back) = tokio::join!(fence_in(&place, late), rolled_back_late(keeper));
    assert!(fence >= rolled_back, "{fence} before {rolled_back}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_form_for_programs_runs_in_a_task() {
    let place = Sqlite::place().await;
    let (idem, mut tx) = (place.idem.clone(), place.begin().await);
    let task = tokio::spawn(async move {
        let key = Key::new("task", "1").unwrap();
        let body = async |tx: &mut Transaction<'_, Sqlite>| {
            Sqlite::add(tx, 1).await?;
            anyhow::Ok(1)
        };
        let result = idem.run_in(&mut tx, key, Policy::new(), body).await;
        tx.commit().await.unwrap();
        result
    });
    assert_eq!(task.await.unwrap().unwrap(), 1);
    assert_eq!(place.effects().await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_sqlite_rolled_back_within_the_body_has_an_unknown_outcome() {
    let place = Sqlite::place().await;
    let mut tx = place.begin().await;
    let body = async |tx: &mut Transaction<'_, Sqlite>| {
        Sqlite::add(tx, 1).await?;
        sqlx::raw_sql(ROLLED_BACK).execute(&mut **tx).await?;
        anyhow::Ok("run".to_owned())
    };
    let key = Key::new("full", "1").unwrap();
    let refused = refusal(place.idem.run_in(&mut tx, key, Policy::new(), body).await);
    // What it might have written after that would be kept.
    assert!(matches!(refused, Error::OutcomeUnknown { .. }), "{refused}");
    drop(tx);
    assert!(place.effects().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_session_is_kept_from_the_record_of_a_body_that_runs() {
    let impatiently = "PRAGMA busy_timeout = 50";
    crate::by_hand::another_session_is_kept_from_the_record::<Sqlite>(impatiently).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_in_vain_for_the_file_to_settle_is_told() {
    let impatiently = "PRAGMA busy_timeout = 50";
    let told = crate::locks::who_waits_in_vain_to_settle_is_told::<Sqlite>("SELECT 1", impatiently);
    let code = code(&told.await).parse::<u32>().unwrap();
    assert_eq!(code & 0xff, 5, "SQLITE_BUSY");
}

/// A file tells nobody who waits for it: what is seen is that there is no answer yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_waits_for_the_file_and_gets_what_the_first_leaves() {
    for (commits, expected, told) in [
        (true, "run 1", Outcome::Replayed),
        (false, "run 2", Outcome::Executed),
    ] {
        let place = Sqlite::place().await;
        let mut first = place.begin().await;
        pay(&place, &mut first, 1, Then::End).await.unwrap();
        let second = async {
            let mut tx = place.begin().await;
            let answer = observe(pay(&place, &mut tx, 1, Then::End)).await;
            tx.commit().await.unwrap();
            answer
        };
        let mut second = std::pin::pin!(second);
        let early = tokio::time::timeout(Duration::from_millis(200), &mut second).await;
        early.expect_err("the first has the file");
        if commits {
            first.commit().await.unwrap();
        } else {
            first.rollback().await.unwrap();
        }
        let (result, outcome) = second.await;
        assert_eq!((result.unwrap().as_str(), outcome), (expected, told));
        assert_eq!(place.effects().await, [1]);
    }
}

/// The connection keeps a hundred prepared statements, and more push out the caller's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_with_other_keys_prepare_nothing_new() {
    let place = Sqlite::place().await;
    let mut connection = place.pool.acquire().await.unwrap();
    let mut sizes = Vec::new();
    for number in 0..4 {
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
        pay(&place, &mut tx, number, Then::End).await.unwrap();
        tx.commit().await.unwrap();
        sizes.push(connection.cached_statements_size());
    }
    assert_eq!(sizes, [sizes[0]; 4]);
}

const ENDS: [(&str, &[i64]); 4] = [
    ("COMMIT; BEGIN IMMEDIATE", &[1]),
    ("COMMIT", &[1]),
    (ROLLED_BACK, &[]),
    ("ROLLBACK; BEGIN IMMEDIATE", &[]),
];

/// With a savepoint that looks like the body's own.
const END_IN_DISGUISE: &str = "ROLLBACK; BEGIN IMMEDIATE; SAVEPOINT _sqlx_savepoint_1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_body_that_ends_the_transaction_nobody_knows_what_is_kept() {
    for (end, kept) in ENDS {
        crate::ended::is_told::<Sqlite>(end, kept).await;
        crate::ended::is_told_without_a_key::<Sqlite>(end, kept).await;
    }
    crate::ended::is_told::<Sqlite>(END_IN_DISGUISE, &[]).await;
}

/// What SQLite does by itself where the disk is full. In small letters, or a mutant of our own words
/// would change it, too.
const ROLLED_BACK: &str = "rollback";

/// Whose owner then rolls back.
async fn is_as_good_as_any(connection: &mut SqliteConnection, number: i64, place: &Place<Sqlite>) {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
    pay(place, &mut tx, number, Then::End).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [number]);
    Sqlite::clear(&place.pool).await;
}

/// Where a body meets this.
#[derive(Debug, Clone, Copy)]
enum Rolled {
    Here,
    /// In a savepoint of its own, which it then drops.
    Deeper,
    /// Before a savepoint of its own, which begins a transaction where there is none.
    BeforeASavepoint,
}

/// A body that keeps it to itself, and pays.
async fn is_rolled_back(
    tx: &mut Transaction<'_, Sqlite>,
    at: Rolled,
    number: i64,
) -> anyhow::Result<String> {
    match at {
        Rolled::Here => {
            sqlx::raw_sql(ROLLED_BACK).execute(&mut **tx).await?;
        }
        Rolled::Deeper => {
            let mut deeper = tx.begin().await?;
            sqlx::raw_sql(ROLLED_BACK).execute(&mut *deeper).await?;
        }
        Rolled::BeforeASavepoint => {
            sqlx::raw_sql(ROLLED_BACK).execute(&mut **tx).await?;
            let mut deeper = tx.begin().await?;
            Sqlite::add(&mut deeper, number).await?;
            deeper.rollback().await?;
        }
    }
    Sqlite::add(tx, number).await?;
    Ok("run".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_transaction_that_sqlite_rolled_back_a_connection_is_as_good_as_any() {
    let place = Sqlite::place().await;
    let mut connection = place.pool.acquire().await.unwrap();
    let mut number = 0;
    for at in [Rolled::Here, Rolled::Deeper, Rolled::BeforeASavepoint] {
        for (succeeds, commits) in [(true, true), (true, false), (false, true), (false, false)] {
            number += 1;
            let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
            // What is gone with it.
            pay(&place, &mut tx, 100 + number, Then::End).await.unwrap();
            let body = async |tx: &mut Transaction<'_, Sqlite>| {
                let paid = is_rolled_back(tx, at, 200 + number).await;
                anyhow::ensure!(succeeds, "the disk is full");
                paid
            };
            let key = Key::new("full", "1").unwrap();
            let told = place.idem.run_in(&mut tx, key, Policy::new(), body).await;
            let told = told.unwrap_err();
            if succeeds {
                let told = told.downcast::<Error>().unwrap();
                assert!(
                    matches!(told, Error::OutcomeUnknown { .. }),
                    "{at:?}: {told}"
                );
            }
            if commits {
                let _ = pay(&place, &mut tx, 300 + number, Then::End).await;
                tx.commit().await.unwrap_err();
            } else {
                tx.rollback().await.unwrap();
            }
            // What a body pays in no transaction is kept at once.
            let kept = match at {
                Rolled::Here | Rolled::Deeper => vec![200 + number],
                Rolled::BeforeASavepoint => vec![],
            };
            assert_eq!(place.effects().await, kept, "{at:?}");
            Sqlite::clear(&place.pool).await;
            is_as_good_as_any(&mut connection, number, &place).await;
        }
    }
}

/// Where foreign keys are not looked at, one is kept that a commit would refuse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_refused_as_lost_also_after_one_that_was_kept() {
    let place = Sqlite::place().await;
    let mut connection = place.pool.acquire().await.unwrap();
    for (number, foreign_keys) in [(1, "OFF"), (2, "ON"), (3, "ON")] {
        let set = format!("PRAGMA foreign_keys = {foreign_keys}");
        let set = sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut *connection);
        set.await.unwrap();
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let body = async |tx: &mut Transaction<'_, Sqlite>| {
            is_rolled_back(tx, Rolled::BeforeASavepoint, number).await
        };
        let key = Key::new("full", "1").unwrap();
        let told = place.idem.run_in(&mut tx, key, Policy::new(), body).await;
        told.unwrap_err();
        assert_eq!(tx.commit().await.is_ok(), foreign_keys == "OFF");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_disk_too_full_for_a_record_a_connection_is_as_good_as_any() {
    let place = Sqlite::place().await;
    let mut connection = place.pool.acquire().await.unwrap();
    for (number, pages) in [(1, 1), (2, 1_000_000)] {
        let room = sqlx::raw_sql(AssertSqlSafe(format!("PRAGMA max_page_count = {pages}")));
        room.execute(&mut *connection).await.unwrap();
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let body = async |_: &mut Transaction<'_, Sqlite>| anyhow::Ok("x".repeat(100_000));
        let key = Key::new("full", "1").unwrap();
        let told = place.idem.run_in(&mut tx, key, Policy::new(), body).await;
        if pages == 1 {
            let told = refusal(told);
            let Error::Store { source } = &told else {
                panic!("{told}");
            };
            assert_eq!(source.kind(), StoreErrorKind::Refused);
            tx.rollback().await.unwrap();
        } else {
            told.unwrap();
            tx.commit().await.unwrap();
        }
        if pages > 1 {
            is_as_good_as_any(&mut connection, number, &place).await;
        }
    }
}

/// Its renewals can not be written meanwhile, and nobody else's claim either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_settles_in_a_transaction_longer_than_its_lease() {
    let settled = longer_than_its_lease::<Sqlite>(async |place| place.begin().await);
    settled.await.unwrap();
}
