//! MariaDB, as a server of the MySQL protocol.

use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_core::store::MySqlStore;
use idem_core::{Error, Idempotency, Key, Outcome, Policy, observe};
use idem_tests::changed_rows::{counting_changed_rows, is_counting_them};
use idem_tests::elsewhere;
use idem_tests::mariadb::MariaDbServer;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, Connection, MySql, MySqlConnection, MySqlPool, Transaction};

use crate::base::{Base, Place};
use crate::half::drop_at;
use crate::isolation::{begin_at, behind, code};
use crate::settle_in::longer_than_its_lease;
use crate::shop::{Then, pay};

mod timed_out;

static SERVER: LazyLock<MariaDbServer> = LazyLock::new(|| MariaDbServer::start().unwrap());

async fn pool(server: &str, database: &str) -> MySqlPool {
    let options = MySqlConnectOptions::from_str(server).unwrap();
    let pool = MySqlPoolOptions::new().max_connections(8);
    pool.connect_with(options.database(database)).await.unwrap()
}

/// A database of its own on `server`.
async fn place(server: &str) -> Place<MySql> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("made_{}", MADE.fetch_add(1, Ordering::Relaxed));
    let create = sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")));
    create.execute(&pool(server, "test").await).await.unwrap();
    let pool = pool(server, &name).await;
    let store = MySqlStore::new(pool.clone());
    store.migrate().await.unwrap();
    let effect = "CREATE TABLE effect (number BIGINT NOT NULL) ENGINE = InnoDB";
    sqlx::raw_sql(effect).execute(&pool).await.unwrap();
    let leases = Idempotency::builder(store).build().unwrap();
    Place::new(pool, leases, None)
}

impl Base for MySql {
    const ALWAYS_WAITS: bool = true;
    /// The server waits in whole seconds.
    const IS_TOLD_WITHIN: Duration = Duration::from_secs(2);

    type Store = MySqlStore;

    fn store(pool: &MySqlPool) -> MySqlStore {
        MySqlStore::new(pool.clone())
    }

    async fn place() -> Place<Self> {
        place(&elsewhere::server(|| SERVER.url())).await
    }

    async fn begin(pool: &MySqlPool) -> Transaction<'static, Self> {
        pool.begin().await.unwrap()
    }

    /// As text: a connection of sqlx that is dropped while it prepares a statement is out of step.
    async fn add(connection: &mut MySqlConnection, number: i64) -> sqlx::Result<()> {
        let insert = AssertSqlSafe(format!("INSERT INTO effect VALUES ({number})"));
        let insert = sqlx::raw_sql(insert).execute(connection);
        insert.await.map(drop)
    }

    async fn effects(pool: &MySqlPool) -> Vec<i64> {
        let all = sqlx::query_scalar("SELECT number FROM effect ORDER BY number");
        all.fetch_all(pool).await.unwrap()
    }

    async fn clear(pool: &MySqlPool) {
        let clear = sqlx::raw_sql("DELETE FROM effect").execute(pool);
        clear.await.unwrap();
    }

    async fn waiting(pool: &MySqlPool) -> i64 {
        // Whatever else runs here; the list of waiting transactions is not kept up to date for
        // those who look often.
        let waiting = "SELECT count(*) FROM information_schema.processlist \
                       WHERE db = DATABASE() AND command = 'Query' AND id <> CONNECTION_ID()";
        sqlx::query_scalar(waiting).fetch_one(pool).await.unwrap()
    }

    async fn patience(connection: &mut MySqlConnection) -> String {
        let patience = "SELECT CAST(@@SESSION.innodb_lock_wait_timeout AS CHAR)";
        let patience = sqlx::query_scalar(patience).fetch_one(connection);
        patience.await.unwrap()
    }
}

crate::scenes! { MySql:
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
    },
}

// N12
mod at_every_level {
    use super::*;
    use crate::isolation;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_body_runs_once_at_read_committed() {
        isolation::a_body_runs_once::<MySql>("READ COMMITTED").await;
        isolation::who_began_before_sees_the_first::<MySql>("READ COMMITTED").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_body_runs_once_at_repeatable_read() {
        isolation::a_body_runs_once::<MySql>("REPEATABLE READ").await;
        isolation::who_began_before_sees_the_first::<MySql>("REPEATABLE READ").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_body_runs_once_at_serializable() {
        isolation::a_body_runs_once::<MySql>("SERIALIZABLE").await;
        isolation::who_began_before_sees_the_first::<MySql>("SERIALIZABLE").await;
    }

    const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_duplicate_is_told_that_the_first_is_open() {
        for level in LEVELS {
            isolation::who_comes_while_the_first_is_open_is_told::<MySql>(level).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_duplicate_that_waits_gets_what_the_first_leaves() {
        for level in LEVELS {
            for (commits, expected) in [(true, "run 1"), (false, "run 2")] {
                let result = isolation::who_waits_for_the_first_gets::<MySql>(level, commits).await;
                assert_eq!(result.unwrap(), expected, "{level}");
            }
        }
    }
}

/// What the server does by itself at a deadlock: it is in no transaction then.
const LOST: &str = "ROLLBACK";

/// Steps in savepoints of their own, of which the first meets a deadlock and is dropped.
async fn in_steps(tx: &mut Transaction<'_, MySql>, succeeds: bool) -> anyhow::Result<String> {
    MySql::add(tx, 1).await?;
    for lost in [LOST, "SELECT 1"] {
        let mut step = match tx.begin().await {
            Ok(step) => step,
            // Which tells what became of the last one.
            Err(_) if succeeds => continue,
            Err(error) => return Err(error.into()),
        };
        sqlx::raw_sql(lost).execute(&mut *step).await?;
    }
    // The first of these is told in its place.
    let _ = MySql::add(tx, 2).await;
    MySql::add(tx, 3).await?;
    Ok(String::new())
}

/// One step, which meets it and is dropped.
async fn in_a_step(tx: &mut Transaction<'_, MySql>) -> anyhow::Result<String> {
    let mut step = tx.begin().await?;
    sqlx::raw_sql(LOST).execute(&mut *step).await?;
    drop(step);
    anyhow::bail!("a deadlock")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_deadlock_in_a_step_that_was_dropped_nothing_is_written() {
    #[derive(Debug, Clone, Copy)]
    enum Body {
        Succeeds,
        Fails,
        FailsAtOnce,
    }

    let place = MySql::place().await;
    for body in [Body::Succeeds, Body::Fails, Body::FailsAtOnce] {
        for commits in [false, true] {
            let told = format!("{body:?}, commits: {commits}");
            let mut tx = place.begin().await;
            MySql::add(&mut tx, 6).await.unwrap();
            let steps = async |tx: &mut Transaction<'_, MySql>| match body {
                Body::Succeeds => in_steps(tx, true).await,
                Body::Fails => in_steps(tx, false).await,
                Body::FailsAtOnce => in_a_step(tx).await,
            };
            let key = Key::new("steps", "1").unwrap();
            let call = place.idem.run_in(&mut tx, key, Policy::new(), steps).await;
            let error = call.expect_err(&told);
            if let Body::Succeeds = body {
                let error = error.downcast::<Error>().unwrap();
                assert!(
                    matches!(error, Error::OutcomeUnknown { .. }),
                    "{told}: {error}"
                );
            }
            // As if nothing had been.
            for number in [7, 8, 9] {
                let _ = MySql::add(&mut tx, number).await;
            }
            if commits {
                let _ = tx.commit().await;
            } else {
                let _ = tx.rollback().await;
            }
            // What a body writes after one is committed at once.
            let kept: &[i64] = match body {
                Body::Succeeds => &[3],
                Body::Fails | Body::FailsAtOnce => &[],
            };
            assert_eq!(place.effects().await, kept, "{told}");
            MySql::clear(&place.pool).await;
        }
    }
    for number in 1..=8 {
        let mut tx = place.begin().await;
        pay(&place, &mut tx, number, Then::End).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// sqlx then goes back to a savepoint that is not there any more, which is told to whoever asks next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_drops_the_commit_of_a_step_is_kept() {
    let place = MySql::place().await;
    let mut tx = place.begin().await;
    let body = async |tx: &mut Transaction<'_, MySql>| {
        let mut step = tx.begin().await?;
        MySql::add(&mut step, 1).await?;
        assert!(!drop_at(1, step.commit()).await, "it was not answered yet");
        anyhow::Ok(())
    };
    let key = Key::new("step", "1").unwrap();
    let call = place.idem.run_in(&mut tx, key, Policy::new(), body).await;
    call.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1]);
}

/// As by itself from MariaDB 11.6.2 on: what others have changed since its first look can not be
/// changed or locked in a transaction.
mod of_one_snapshot {
    use super::*;
    use crate::isolation;
    use crate::shop::refusal;

    const READ_COMMITTED: &str = "READ COMMITTED; SET SESSION innodb_snapshot_isolation = ON";
    const REPEATABLE_READ: &str = "REPEATABLE READ; SET SESSION innodb_snapshot_isolation = ON";
    const SERIALIZABLE: &str = "SERIALIZABLE; SET SESSION innodb_snapshot_isolation = ON";
    const LEVELS: [&str; 3] = [READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE];

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_body_runs_once() {
        for level in LEVELS {
            isolation::a_body_runs_once::<MySql>(level).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_duplicate_is_told_that_the_first_is_open() {
        for level in LEVELS {
            isolation::who_comes_while_the_first_is_open_is_told::<MySql>(level).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_can_not_see_the_first_is_told_and_nothing_is_written_after_that() {
        for level in [REPEATABLE_READ, SERIALIZABLE] {
            let place = MySql::place().await;
            let mut second = begin_at(&place, level).await;
            let look = "START TRANSACTION WITH CONSISTENT SNAPSHOT";
            sqlx::raw_sql(look).execute(&mut *second).await.unwrap();
            MySql::add(&mut second, 6).await.unwrap();
            let mut first = begin_at(&place, level).await;
            pay(&place, &mut first, 1, Then::End).await.unwrap();
            first.commit().await.unwrap();

            let refused = refusal(pay(&place, &mut second, 1, Then::End).await);
            assert!(matches!(refused, Error::Store { .. }), "{level}: {refused}");
            assert!(refused.is_retryable());
            assert_eq!(number(&refused), 1020);
            assert_eq!(place.bodies.count(), 1, "the body did not run");
            let written = MySql::add(&mut second, 7).await;
            written.expect_err("what is written now would commit by itself");
            let _ = second.commit().await;
            assert_eq!(place.effects().await, [1]);

            let mut again = begin_at(&place, level).await;
            let replayed = pay(&place, &mut again, 1, Then::End).await;
            assert_eq!(replayed.unwrap(), "run 1");
            pay(&place, &mut again, 2, Then::End).await.unwrap();
            again.commit().await.unwrap();
            assert_eq!(place.effects().await, [1, 2]);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_looked_at_nothing_sees_the_first() {
        for level in LEVELS {
            let place = MySql::place().await;
            let mut second = begin_at(&place, level).await;
            let mut first = begin_at(&place, level).await;
            pay(&place, &mut first, 1, Then::End).await.unwrap();
            first.commit().await.unwrap();
            let replayed = pay(&place, &mut second, 1, Then::End).await;
            assert_eq!(replayed.unwrap(), "run 1", "{level}");
            second.commit().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_session_is_kept_from_the_record_of_a_body_that_runs() {
    let impatiently = "SET SESSION innodb_lock_wait_timeout = 1";
    crate::by_hand::another_session_is_kept_from_the_record::<MySql>(impatiently).await;
}

mod in_each_others_way {
    use super::*;
    use crate::locks;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn after_a_deadlock_that_a_body_tells_nothing_is_half_kept() {
        locks::after_a_deadlock_nothing_is_half_kept::<MySql>(true, &[]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn after_a_deadlock_that_a_body_keeps_to_itself_nothing_is_half_kept() {
        locks::after_a_deadlock_nothing_is_half_kept::<MySql>(false, &[]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn of_two_that_want_two_keys_crosswise_one_is_told() {
        locks::of_two_that_want_two_keys_crosswise_one_is_told::<MySql>("40001").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_waits_in_vain_to_settle_is_told() {
        let lock = "SELECT 1 FROM idempotent_record FOR UPDATE";
        let told = locks::who_waits_in_vain_to_settle_is_told::<MySql>(lock, "SELECT 1").await;
        assert_eq!((code(&told), number(&told)), ("HY000".to_owned(), 1205));
        let told = told.to_string();
        assert!(told.ends_with(": locked by another transaction"), "{told}");
    }
}

/// The server's own number of the error behind an error of the guard.
fn number(error: &Error) -> u16 {
    let error = behind(error).downcast_ref::<MySqlDatabaseError>();
    error.number()
}

const ENDS: [(&str, &[i64]); 6] = [
    ("CREATE TABLE IF NOT EXISTS made (number BIGINT)", &[1]),
    ("COMMIT", &[1]),
    ("COMMIT AND CHAIN", &[1]),
    ("START TRANSACTION", &[1]),
    ("ROLLBACK", &[]),
    ("ROLLBACK AND CHAIN", &[]),
];

/// With a savepoint that looks like the body's own.
const END_IN_DISGUISE: &str = "ROLLBACK; START TRANSACTION; SAVEPOINT _sqlx_savepoint_1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_body_that_ends_the_transaction_nobody_knows_what_is_kept() {
    for (end, kept) in ENDS {
        crate::ended::is_told::<MySql>(end, kept).await;
        crate::ended::is_told_without_a_key::<MySql>(end, kept).await;
    }
    crate::ended::is_told::<MySql>(END_IN_DISGUISE, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_body_that_ends_the_transaction_at_any_level_nobody_knows_what_is_kept() {
    for (end, kept) in ENDS {
        for level in ["READ COMMITTED", "SERIALIZABLE"] {
            crate::ended::is_told_at::<MySql>(level, end, kept).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_whose_session_is_in_a_hurry_is_told_that_the_first_runs() {
    let hurry = "SET SESSION max_statement_time = 0.5";
    crate::concurrent::who_is_stopped_while_it_waits_is_told_that_the_first_runs::<MySql>(hurry)
        .await;
}

/// What it would have put back is not what the caller has set since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_dropped_as_it_waited_puts_nothing_back_later() {
    const OWN: &str = "SET SESSION innodb_lock_wait_timeout = 37";
    let place = MySql::place().await;
    let mut first = place.begin().await;
    pay(&place, &mut first, 1, Then::End).await.unwrap();

    let mut session = place.pool.acquire().await.unwrap();
    let mut second = session.begin().await.unwrap();
    let waits = pay(&place, &mut second, 1, Then::End);
    let dropped = tokio::time::timeout(Duration::from_millis(200), waits).await;
    dropped.unwrap_err();
    drop(second);
    // Hears how the wait ended.
    let _ = session.ping().await;
    sqlx::raw_sql(OWN).execute(&mut *session).await.unwrap();
    let mut second = session.begin().await.unwrap();
    pay(&place, &mut second, 2, Then::End).await.unwrap();
    second.commit().await.unwrap();
    assert_eq!(MySql::patience(&mut session).await, "37");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_settles_in_a_transaction_longer_than_its_lease() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let begin = async |place: &Place<MySql>| begin_at(place, level).await;
        let settled = longer_than_its_lease(begin).await;
        settled.unwrap_or_else(|error| panic!("{level}: {error}"));
    }
}

// CASES N17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_only_changed_rows_are_counted_decides_nothing() {
    let server = MySqlConnectOptions::from_str(&SERVER.url()).unwrap();
    let port = counting_changed_rows(server.get_port()).await;
    let place = place(&format!(
        "mysql://{}@127.0.0.1:{port}",
        server.get_username()
    ))
    .await;
    let mut connection = place.pool.acquire().await.unwrap();
    assert!(is_counting_them(&mut connection).await);
    for outcome in [Outcome::Executed, Outcome::Replayed] {
        let mut tx = place.begin().await;
        let (paid, observed) = observe(pay(&place, &mut tx, 1, Then::End)).await;
        assert_eq!(paid.unwrap(), "run 1");
        assert_eq!(observed, outcome);
        tx.commit().await.unwrap();
    }
    let mut tx = place.begin().await;
    pay(&place, &mut tx, 2, Then::End).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = place.begin().await;
    assert_eq!(pay(&place, &mut tx, 2, Then::End).await.unwrap(), "run 3");
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 2]);
}
