//! PostgreSQL.

use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use idem_core::Idempotency;
use idem_core::store::PostgresStore;
use idem_tests::postgres::PostgresServer;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Transaction};

use crate::base::{Base, Place};

static SERVER: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start().unwrap());

async fn pool(database: &str) -> PgPool {
    let options = PgConnectOptions::from_str(&SERVER.url()).unwrap();
    let pool = PgPoolOptions::new().max_connections(8);
    pool.connect_with(options.database(database)).await.unwrap()
}

impl Base for Postgres {
    async fn place() -> Place<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("made_{}", MADE.fetch_add(1, Ordering::Relaxed));
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        let admin = pool("postgres").await;
        let create = sqlx::raw_sql(AssertSqlSafe(create)).execute(&admin).await;
        create.unwrap();
        let pool = pool(&name).await;
        let store = PostgresStore::new(pool.clone());
        store.migrate().await.unwrap();
        let effect = sqlx::raw_sql("CREATE TABLE effect (number BIGINT NOT NULL)");
        effect.execute(&pool).await.unwrap();
        let leases = Idempotency::builder(store).build().unwrap();
        Place::new(pool, leases, None)
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

    async fn waiting(pool: &PgPool) -> i64 {
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
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
    },
    half::{
        a_body_that_fails_at_its_end_and_is_retried_has_one_effect,
        a_body_that_panics_leaves_nothing,
        a_body_that_is_dropped_leaves_nothing,
        a_time_out_around_the_call_leaves_nothing,
    },
    concurrent::{
        a_duplicate_is_told_that_the_first_runs_and_other_keys_flow,
        a_duplicate_that_waits_gets_what_the_first_commits,
        a_duplicate_that_waits_runs_when_the_first_rolls_back,
        a_duplicate_waits_no_longer_than_it_says,
        duplicates_of_a_finished_request_do_not_hinder_each_other_for_long,
        of_a_crowd_each_key_has_one_effect,
    },
    lease::{
        a_live_attempt_is_in_progress,
        a_failed_attempt_is_retried_and_what_it_gives_is_replayed_there,
        an_attempt_that_was_dropped_is_held,
    },
    settle_in::{
        effect_and_success_are_one_transaction,
        a_body_that_is_dropped_after_its_commit_has_succeeded,
        after_a_rollback_the_error_says_how_the_record_ends,
        the_effects_of_a_stale_owner_roll_back_with_it,
        a_body_with_tx_has_nothing_to_settle,
    },
}

mod at_higher_levels {
    use super::*;
    use crate::isolation;

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
}
