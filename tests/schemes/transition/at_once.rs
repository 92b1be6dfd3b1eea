//! Events that come at the same time, or into each other's transactions.

use idem_core::sql::SqlError;
use idem_core::states::{Answer, Cause, TransitionError};
use sqlx::Transaction;
use tokio::task::JoinSet;

use super::{Order, apply, ask, at_once, conflict, is_applied, order, orders, with_orders};
use crate::bed::{Bed, Fresh};

pub(crate) async fn of_fifty_payments_one_is_applied<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    let payments = (0..50).map(|number| (1, ask(Order::Paid, &format!("pay-{number}"))));
    let answers = at_once(&fresh, payments.collect()).await;
    let refused = conflict(Cause::OtherEvent, Order::Paid, 2);
    assert_eq!(
        answers.iter().filter(|answer| is_applied(answer)).count(),
        1
    );
    assert_eq!(
        answers.iter().filter(|answer| **answer == refused).count(),
        49
    );
    assert_eq!(order(&fresh, 1).await, [2, 2]);
}

pub(crate) async fn of_fifty_deliveries_one_is_applied<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    let deliveries = (0..50).map(|_| (1, ask(Order::Paid, "pay-1")));
    let answers = at_once(&fresh, deliveries.collect()).await;
    let there = Answer::AlreadyThere {
        applied_version: 2,
        current: Order::Paid,
        version: 2,
    };
    assert_eq!(
        answers.iter().filter(|answer| is_applied(answer)).count(),
        1
    );
    assert_eq!(
        answers.iter().filter(|answer| **answer == there).count(),
        49
    );
    assert_eq!(order(&fresh, 1).await, [2, 2]);
}

pub(crate) async fn fifty_orders_are_paid_at_once<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 50).await;
    let payments = (1..=50).map(|id| (id, ask(Order::Paid, &format!("pay-{id}"))));
    if !DB::KEEPS_ROWS_APART(fresh.level) {
        let answers = at_once(&fresh, payments.collect()).await;
        assert!(answers.iter().all(is_applied), "{answers:?}");
        return;
    }
    let mut tasks = JoinSet::new();
    for (id, ask) in payments {
        let fresh = fresh.clone();
        tasks.spawn(async move {
            let mut tx = DB::begin(&fresh.pool).await;
            let answer = DB::apply(&orders(), &mut tx, id, &ask).await.unwrap();
            DB::commit(tx).await.unwrap();
            answer
        });
    }
    let answers = tasks.join_all().await;
    assert!(answers.iter().all(is_applied), "{answers:?}");
}

pub(crate) async fn a_row_that_stays_locked_is_a_typed_error<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    let mut first = DB::begin(&fresh.pool).await;
    let pay = ask(Order::Paid, "pay-1");
    let answer = DB::apply(&orders(), &mut first, 1, &pay).await;
    assert!(is_applied(&answer.unwrap()));
    let mut second = DB::begin(&fresh.pool).await;
    DB::within(&mut second, DB::IMPATIENT).await.unwrap();
    let error = DB::apply(&orders(), &mut second, 1, &pay)
        .await
        .unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    // What SQLite locks is the file, and whoever waits for it in vain is told that it is busy.
    let is_locked = matches!(error, TransitionError::Sql(SqlError::LockTimeout { .. }));
    let is_busy = matches!(error, TransitionError::Sql(SqlError::Serialization { .. }));
    assert!(is_locked || is_busy && DB::TEXT == "TEXT", "{error:?}");
    drop(second);
    DB::commit(first).await.unwrap();
    assert_eq!(order(&fresh, 1).await, [2, 2]);
}

/// Each has changed one order and wants the other's. Where a whole file is locked, nobody comes so far.
pub(crate) async fn of_two_that_want_two_orders_crosswise_one_is_told<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 2).await;
    let pay = ask(Order::Paid, "pay");
    let (mut first, mut second) = (DB::begin(&fresh.pool).await, DB::begin(&fresh.pool).await);
    let answers = [
        DB::apply(&orders(), &mut first, 1, &pay).await,
        DB::apply(&orders(), &mut second, 2, &pay).await,
    ];
    assert!(answers.iter().flatten().all(is_applied), "{answers:?}");
    let cross = async |mut tx: Transaction<'static, DB>, id| {
        DB::apply(&orders(), &mut tx, id, &pay).await // dropped, it lets the other one go on
    };
    let (first, second) = tokio::join!(cross(first, 2), cross(second, 1));
    let told = match (first, second) {
        (Ok(_), Err(told)) | (Err(told), Ok(_)) => told,
        both => panic!("{both:?}"),
    };
    assert!(told.is_retryable());
    let is_typed = matches!(told, TransitionError::Sql(SqlError::Deadlock { .. }));
    assert!(is_typed, "{told:?}");
}

/// It may begin again, if its snapshot is too old; it never says that the event is new.
// CASES N12
pub(crate) async fn a_transaction_that_read_before_gets_no_false_answer<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    let pay = ask(Order::Paid, "pay-1");
    let mut early = DB::begin(&fresh.pool).await;
    look(&fresh, &mut early).await;
    assert!(is_applied(&apply(&fresh, 1, &pay).await));
    match DB::apply(&orders(), &mut early, 1, &pay).await {
        Ok(answer) => {
            assert!(!DB::HAS_ONE_SNAPSHOT(fresh.level));
            assert!(matches!(answer, Answer::AlreadyThere { .. }), "{answer:?}");
        }
        Err(error) => {
            assert!(DB::HAS_ONE_SNAPSHOT(fresh.level));
            let is_typed = matches!(error, TransitionError::Sql(SqlError::Serialization { .. }));
            assert!(is_typed && error.is_retryable(), "{error:?}");
        }
    }
}

/// Takes the snapshot, of a table that nobody changes: at SERIALIZABLE, MariaDB locks what is read.
async fn look<DB: Bed>(fresh: &Fresh<DB>, tx: &mut Transaction<'static, DB>) {
    let table = "CREATE TABLE seen (id BIGINT)";
    DB::execute(&fresh.pool, table).await.unwrap();
    DB::within(tx, "SELECT * FROM seen").await.unwrap();
}
