//! Changes of state by events.

use idem_core::States;
use idem_core::states::{Answer, Cause, Transition};
use tokio::task::JoinSet;

use crate::bed::{Ask, Bed, Fresh};

mod answers;
mod at_once;
mod dropped;
mod tables;

pub(crate) use answers::*;
pub(crate) use at_once::*;
pub(crate) use dropped::*;
pub(crate) use tables::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
pub(crate) enum Order {
    #[state(code = 1, to(Paid, Cancelled))]
    Created,
    #[state(code = 2, to(Shipped))]
    Paid,
    #[state(code = 3)]
    Shipped,
    #[state(code = 9)]
    Cancelled,
}

const ORDERS: &str = "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, \
     status SMALLINT NOT NULL, version INTEGER NOT NULL)";

fn orders() -> Transition<Order> {
    Transition::on("orders")
}

fn ask(to: Order, event: &str) -> Ask {
    Ask {
        to,
        event: event.to_owned(),
        expected: None,
    }
}

fn of_version(expected: i64, ask: Ask) -> Ask {
    Ask {
        expected: Some(expected),
        ..ask
    }
}

/// So many orders, from 1 on, all created, of version 1.
async fn with_orders<DB: Bed>(fresh: &Fresh<DB>, count: i64) {
    orders().migrate(&fresh.pool).await.unwrap();
    DB::execute(&fresh.pool, ORDERS).await.unwrap();
    let rows: Vec<String> = (1..=count).map(|id| format!("({id}, 1, 1)")).collect();
    let insert = format!("INSERT INTO orders VALUES {}", rows.join(", "));
    DB::execute(&fresh.pool, &insert).await.unwrap();
}

async fn order<DB: Bed>(fresh: &Fresh<DB>, id: i64) -> Vec<i64> {
    // As a BIGINT everywhere.
    let sql = format!("SELECT status + id - id, version + id - id FROM orders WHERE id = {id}");
    DB::numbers(&fresh.pool, &sql).await
}

/// In a transaction of its own, again as often as transactions are in each other's way.
async fn apply<DB: Bed>(fresh: &Fresh<DB>, id: i64, ask: &Ask) -> Answer<Order> {
    loop {
        let mut tx = DB::begin(&fresh.pool).await;
        match DB::apply(&orders(), &mut tx, id, ask).await {
            Ok(answer) => match DB::commit(tx).await {
                Ok(()) => return answer,
                Err(error) => assert!(is_serialization_failure(&error), "{error:?}"),
            },
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
    }
}

/// A commit is the caller's statement.
pub(crate) fn is_serialization_failure(error: &sqlx::Error) -> bool {
    let error = error.as_database_error().unwrap();
    error.code().is_some_and(|code| code == "40001")
}

async fn at_once<DB: Bed>(fresh: &Fresh<DB>, asked: Vec<(i64, Ask)>) -> Vec<Answer<Order>> {
    let mut tasks = JoinSet::new();
    for (id, ask) in asked {
        let fresh = fresh.clone();
        tasks.spawn(async move { apply(&fresh, id, &ask).await });
    }
    tasks.join_all().await
}

fn is_applied(answer: &Answer<Order>) -> bool {
    matches!(answer, Answer::Applied { .. })
}

fn conflict(cause: Cause, current: Order, version: i64) -> Answer<Order> {
    Answer::Conflict {
        cause,
        current,
        version,
    }
}
