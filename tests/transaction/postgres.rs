//! PostgreSQL.

use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use idem_core::sql::insert_or_get;
use idem_core::store::PostgresStore;
use idem_core::{Error, Idempotency, Key, Policy};
use idem_tests::elsewhere::server;
use idem_tests::postgres::PostgresServer;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Transaction};

use crate::base::{Base, Place};
use crate::isolation::{begin_at, code};
use crate::settle_in::longer_than_its_lease;
use crate::shop::{Then, pay, pay_or_wait_briefly, refusal};

mod cost;
mod defaults;
mod inserted;
mod migrated;
mod purged;

static SERVER: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start().unwrap());

async fn pool(database: &str) -> PgPool {
    let options = PgConnectOptions::from_str(&server(|| SERVER.url())).unwrap();
    let pool = PgPoolOptions::new().max_connections(8);
    pool.connect_with(options.database(database)).await.unwrap()
}

async fn place(pool: PgPool) -> Place<Postgres> {
    let store = PostgresStore::new(pool.clone());
    store.migrate().await.unwrap();
    let effect = sqlx::raw_sql("CREATE TABLE effect (number BIGINT NOT NULL)");
    effect.execute(&pool).await.unwrap();
    let leases = Idempotency::builder(store).build().unwrap();
    Place::new(pool, leases, None)
}

impl Base for Postgres {
    type Store = PostgresStore;

    fn store(pool: &PgPool) -> PostgresStore {
        PostgresStore::new(pool.clone())
    }

    async fn place() -> Place<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("made_{}", MADE.fetch_add(1, Ordering::Relaxed));
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        let admin = pool("postgres").await;
        let create = sqlx::raw_sql(AssertSqlSafe(create)).execute(&admin).await;
        create.unwrap();
        place(pool(&name).await).await
    }

    async fn begin(pool: &PgPool) -> Transaction<'static, Self> {
        pool.begin().await.unwrap()
    }

    async fn add(connection: &mut PgConnection, number: i64) -> sqlx::Result<()> {
        let insert = sqlx::query("INSERT INTO effect VALUES ($1)").bind(number);
        insert.execute(connection).await.map(drop)
    }

    async fn effects(pool: &PgPool) -> Vec<i64> {
        let all = sqlx::query_scalar("SELECT number FROM effect ORDER BY number");
        all.fetch_all(pool).await.unwrap()
    }

    async fn clear(pool: &PgPool) {
        let clear = sqlx::raw_sql("DELETE FROM effect").execute(pool);
        clear.await.unwrap();
    }

    async fn waiting(pool: &PgPool) -> i64 {
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE wait_event_type = 'Lock' AND datname = current_database()";
        sqlx::query_scalar(waiting).fetch_one(pool).await.unwrap()
    }

    async fn patience(connection: &mut PgConnection) -> String {
        let patience = sqlx::query_scalar("SELECT current_setting('lock_timeout')");
        patience.fetch_one(connection).await.unwrap()
    }
}

crate::scenes! { Postgres:
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
        a_duplicate_is_told_that_the_first_runs_and_other_keys_flow,
        a_duplicate_that_waits_gets_what_the_first_commits,
        a_duplicate_that_waits_runs_when_the_first_rolls_back,
        a_duplicate_waits_no_longer_than_it_says,
        who_has_waited_counts_its_time_from_then_on,
        duplicates_of_a_finished_request_do_not_hinder_each_other_for_long,
        of_a_crowd_each_key_has_one_effect,
    },
    given_up::{
        a_body_that_goes_on_keeps_nothing,
        a_body_without_a_key_that_goes_on_keeps_nothing,
        a_body_deeper_down_that_goes_on_keeps_nothing,
        a_savepoint_of_the_caller_stays_one,
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
        a_duplicate_is_told_of_it_when_its_lease_is_over,
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
        a_record_that_another_session_writes_stands_and_nothing_is_kept,
    },
}

/// Each renewal is a change since the snapshot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_at_read_committed_an_attempt_settles_in_a_transaction_longer_than_its_lease() {
    let settled = async |level| {
        longer_than_its_lease::<Postgres>(async |place| begin_at(place, level).await).await
    };
    settled("READ COMMITTED").await.unwrap();
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let refused = settled(level).await.unwrap_err();
        assert_eq!(code(&refused), "40001", "{level}: {refused}");
        assert!(refused.is_retryable());
    }
}

mod at_higher_levels {
    use super::*;
    use crate::{half, isolation};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_body_runs_once_at_repeatable_read() {
        isolation::a_body_runs_once::<Postgres>("REPEATABLE READ").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_body_runs_once_at_serializable() {
        isolation::a_body_runs_once::<Postgres>("SERIALIZABLE").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_transaction_that_can_not_see_the_first_is_told_at_repeatable_read() {
        isolation::who_can_not_see_the_first_is_told::<Postgres>("REPEATABLE READ", "40001").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_transaction_that_can_not_see_the_first_is_told_at_serializable() {
        isolation::who_can_not_see_the_first_is_told::<Postgres>("SERIALIZABLE", "40001").await;
    }

    const LEVELS: [&str; 2] = ["REPEATABLE READ", "SERIALIZABLE"];

    // N32
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_that_is_dropped_anywhere_leaves_all_or_nothing() {
        for level in LEVELS {
            for after_a_failed_one in [false, true] {
                let begin = async |place: &Place<Postgres>| isolation::begin_at(place, level).await;
                half::is_dropped_anywhere(after_a_failed_one, begin).await;
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_duplicate_is_told_that_the_first_is_open() {
        for level in LEVELS {
            isolation::who_comes_while_the_first_is_open_is_told::<Postgres>(level).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_duplicate_that_waits_can_not_see_what_the_first_commits() {
        for level in LEVELS {
            let told = isolation::who_waits_for_the_first_gets::<Postgres>(level, true).await;
            let told = refusal(told);
            assert!(told.is_retryable());
            assert_eq!(code(&told), "40001");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_duplicate_that_waits_runs_when_the_first_rolls_back() {
        for level in LEVELS {
            let run = isolation::who_waits_for_the_first_gets::<Postgres>(level, false).await;
            assert_eq!(run.unwrap(), "run 2");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_transaction_that_was_given_up_before_the_call_nothing_is_half_kept() {
    let place = Postgres::place().await;
    let mut tx = place.begin().await;
    Postgres::add(&mut tx, 6).await.unwrap();
    let wrong = sqlx::raw_sql("SELECT 1 / 0").execute(&mut *tx).await;
    wrong.unwrap_err();
    let refused = refusal(pay(&place, &mut tx, 1, Then::End).await);
    assert_eq!(code(&refused), "25P02");
    Postgres::add(&mut tx, 8).await.unwrap_err();
    Postgres::add(&mut tx, 9).await.unwrap_err();
    let _ = tx.commit().await;
    assert!(place.effects().await.is_empty());
    // Its connection is as good as any.
    for number in 1..=8 {
        let mut tx = place.begin().await;
        pay(&place, &mut tx, number, Then::End).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(place.effects().await.len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_inserts_after_its_transaction_was_given_up_keeps_nothing() {
    let place = Postgres::place().await;
    let mut tx = place.begin().await;
    let body = async |tx: &mut Transaction<'_, Postgres>| {
        Postgres::add(tx, 1).await?;
        let wrong = sqlx::raw_sql("SELECT 1 / 0").execute(&mut **tx).await;
        wrong.unwrap_err();
        let insert = sqlx::query("INSERT INTO effect VALUES (2)");
        let select = sqlx::query_as::<_, (i64,)>("SELECT number FROM effect");
        let inserted = insert_or_get(&mut **tx, "effect_pkey", insert, select).await;
        inserted.unwrap_err();
        anyhow::Ok(())
    };
    let key = Key::new("insert", "1").unwrap();
    let result = place.idem.run_in(&mut tx, key, Policy::new(), body).await;
    result.unwrap_err();
    Postgres::add(&mut tx, 8).await.unwrap_err();
    let _ = tx.commit().await;
    assert!(place.effects().await.is_empty());
}

mod in_each_others_way {
    use super::*;
    use crate::locks;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn after_a_deadlock_that_a_body_tells_nothing_is_half_kept() {
        locks::after_a_deadlock_nothing_is_half_kept::<Postgres>(true, &[6, 8, 9]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn after_a_deadlock_that_a_body_keeps_to_itself_nothing_is_half_kept() {
        locks::after_a_deadlock_nothing_is_half_kept::<Postgres>(false, &[6, 8, 9]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn of_two_that_want_two_keys_crosswise_one_is_told() {
        locks::of_two_that_want_two_keys_crosswise_one_is_told::<Postgres>("40P01").await;
    }

    const IMPATIENTLY: &str = "SET LOCAL lock_timeout = '200ms'";

    /// As by an ALTER that takes its time. The session's own patience ends before the call's.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn while_the_table_is_locked_a_call_is_in_progress_whether_it_waits_or_not() {
        let place = Postgres::place().await;
        let mut alter = place.begin().await;
        let lock = sqlx::raw_sql("LOCK TABLE idempotent_record");
        lock.execute(&mut *alter).await.unwrap();
        let mut tx = place.begin().await;
        Postgres::add(&mut tx, 6).await.unwrap();
        let hurry = sqlx::raw_sql(IMPATIENTLY);
        hurry.execute(&mut *tx).await.unwrap();
        for call in [
            pay(&place, &mut tx, 1, Then::End).await,
            pay_or_wait_briefly(&place, &mut tx, 1, Then::End).await,
        ] {
            let refused = refusal(call);
            assert!(matches!(refused, Error::InProgress { .. }), "{refused}");
        }
        alter.rollback().await.unwrap();
        pay(&place, &mut tx, 1, Then::End).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(place.effects().await, [1, 6]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_waits_in_vain_for_a_row_to_settle_it_is_told() {
        let lock = "SELECT 1 FROM idempotent_record FOR UPDATE";
        let told = locks::who_waits_in_vain_to_settle_is_told::<Postgres>(lock, IMPATIENTLY).await;
        assert_eq!(code(&told), "55P03");
    }

    /// As long as an engine's call may take.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_waits_in_vain_for_a_key_to_settle_it_is_told() {
        let lock = "SELECT pg_advisory_xact_lock(('x' || encode(key_hash, 'hex'))::bit(64)::bigint) \
                    FROM idempotent_record";
        let told = locks::who_waits_in_vain_to_settle_is_told::<Postgres>(lock, "SELECT 1").await;
        assert_eq!(code(&told), "55P03");
    }
}

const ENDS: [(&str, &[i64]); 6] = [
    ("COMMIT; BEGIN", &[1]),
    ("COMMIT AND CHAIN", &[1]),
    ("COMMIT", &[1]),
    ("ROLLBACK", &[]),
    ("ROLLBACK; BEGIN", &[]),
    ("ROLLBACK AND CHAIN", &[]),
];

/// With a savepoint that looks like the body's own.
const END_IN_DISGUISE: &str = "ROLLBACK; BEGIN; SAVEPOINT _sqlx_savepoint_1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_body_that_ends_the_transaction_nothing_goes_on() {
    for (end, kept) in ENDS.into_iter().chain([(END_IN_DISGUISE, &[][..])]) {
        crate::ended::nothing_goes_on_behind::<Postgres>(end, kept).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_body_that_ends_the_transaction_nobody_knows_what_is_kept() {
    for (end, kept) in ENDS {
        crate::ended::is_told::<Postgres>(end, kept).await;
        crate::ended::is_told_without_a_key::<Postgres>(end, kept).await;
    }
    crate::ended::is_told::<Postgres>(END_IN_DISGUISE, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_body_that_ends_the_transaction_at_a_higher_level_nobody_knows_what_is_kept() {
    for (end, kept) in ENDS.into_iter().chain([(END_IN_DISGUISE, &[][..])]) {
        for level in ["READ COMMITTED", "REPEATABLE READ"] {
            crate::ended::is_told_at::<Postgres>(level, end, kept).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_whose_session_is_in_a_hurry_is_told_that_the_first_runs() {
    let hurry = "SET LOCAL statement_timeout = '500ms'";
    crate::concurrent::who_is_stopped_while_it_waits_is_told_that_the_first_runs::<Postgres>(hurry)
        .await;
}
