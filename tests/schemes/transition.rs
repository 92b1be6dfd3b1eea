//! Changes of state by events.

use idem_core::States;
use idem_core::sql::SqlError;
use idem_core::states::{Answer, Cause, Transition, TransitionError};
use sqlx::Transaction;
use tokio::task::JoinSet;

use crate::bed::{Answered, Ask, Bed, Fresh};

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

// CASES Q10
pub(crate) async fn each_case_has_its_answer<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    let pay = ask(Order::Paid, "pay-1");
    let applied = Answer::Applied {
        from: Order::Created,
        version: 2,
    };
    assert_eq!(apply(&fresh, 1, &pay).await, applied);
    let there = Answer::AlreadyThere {
        applied_version: 2,
        current: Order::Paid,
        version: 2,
    };
    assert_eq!(apply(&fresh, 1, &pay).await, there);
    let illegal = Answer::Illegal {
        current: Order::Paid,
        version: 2,
    };
    let cancel = ask(Order::Cancelled, "cancel-1");
    assert_eq!(apply(&fresh, 1, &cancel).await, illegal);
    let again = ask(Order::Paid, "pay-2");
    assert_eq!(
        apply(&fresh, 1, &again).await,
        conflict(Cause::OtherEvent, Order::Paid, 2)
    );
    let reused = ask(Order::Shipped, "pay-1");
    assert_eq!(
        apply(&fresh, 1, &reused).await,
        conflict(Cause::OtherTarget, Order::Paid, 2)
    );
    assert_eq!(apply(&fresh, 2, &pay).await, Answer::NotFound);
    assert_eq!(order(&fresh, 1).await, [2, 2]);
}

fn conflict(cause: Cause, current: Order, version: i64) -> Answer<Order> {
    Answer::Conflict {
        cause,
        current,
        version,
    }
}

// CASES Q08
pub(crate) async fn an_old_version_is_a_conflict_and_changes_nothing<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    for version in [0, 2] {
        let pay = of_version(version, ask(Order::Paid, "pay-1"));
        let expected = conflict(Cause::Version, Order::Created, 1);
        assert_eq!(apply(&fresh, 1, &pay).await, expected);
    }
    assert_eq!(order(&fresh, 1).await, [1, 1]);
    // A refused event was not logged: it may be right later.
    let pay = of_version(1, ask(Order::Paid, "pay-1"));
    assert!(is_applied(&apply(&fresh, 1, &pay).await));
    // Redelivered, it brings the version of then.
    let there = apply(&fresh, 1, &pay).await;
    assert!(matches!(there, Answer::AlreadyThere { .. }), "{there:?}");
}

// CASES N35
pub(crate) async fn a_redelivered_event_is_there_also_after_later_transitions<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_orders(&fresh, 1).await;
    let pay = ask(Order::Paid, "pay-1");
    assert!(is_applied(&apply(&fresh, 1, &pay).await));
    assert!(is_applied(
        &apply(&fresh, 1, &ask(Order::Shipped, "ship-1")).await
    ));
    let there = Answer::AlreadyThere {
        applied_version: 2,
        current: Order::Shipped,
        version: 3,
    };
    assert_eq!(apply(&fresh, 1, &pay).await, there);
    // CASES N15
    let second = apply(&fresh, 1, &ask(Order::Paid, "pay-2")).await;
    assert_eq!(second, conflict(Cause::OtherEvent, Order::Shipped, 3));
    assert_eq!(order(&fresh, 1).await, [3, 3]);
}

// CASES N15
pub(crate) async fn of_two_payments_one_is_applied_and_one_is_a_conflict<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_orders(&fresh, 1).await;
    let payments = ["pay-1", "pay-2"].map(|event| (1, of_version(1, ask(Order::Paid, event))));
    let answers = at_once(&fresh, payments.into()).await;
    assert_eq!(
        answers.iter().filter(|answer| is_applied(answer)).count(),
        1,
        "{answers:?}"
    );
    assert!(
        answers.contains(&conflict(Cause::OtherEvent, Order::Paid, 2)),
        "{answers:?}"
    );
    assert_eq!(order(&fresh, 1).await, [2, 2]);
}

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

pub(crate) async fn every_answer_leaves_the_transaction_usable<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 2).await;
    let mut tx = DB::begin(&fresh.pool).await;
    let asked = [
        (1, ask(Order::Paid, "pay-1")),
        (1, ask(Order::Paid, "pay-1")),
        (1, ask(Order::Paid, "pay-2")),
        (1, ask(Order::Cancelled, "cancel-1")),
        (1, of_version(1, ask(Order::Shipped, "ship-1"))),
        (7, ask(Order::Paid, "pay-7")),
        (2, ask(Order::Paid, "pay-1")),
    ];
    let mut applied = 0;
    for (id, ask) in asked {
        let answer = DB::apply(&orders(), &mut tx, id, &ask).await.unwrap();
        applied += i64::from(is_applied(&answer));
    }
    assert_eq!(applied, 2);
    DB::within(&mut tx, "INSERT INTO orders VALUES (3, 1, 1)")
        .await
        .unwrap();
    DB::commit(tx).await.unwrap();
    assert_eq!(order(&fresh, 1).await, [2, 2]);
    assert_eq!(order(&fresh, 2).await, [2, 2]);
    assert_eq!(order(&fresh, 3).await, [1, 1]);
}

pub(crate) async fn a_rollback_loses_the_change_and_the_event<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    let pay = ask(Order::Paid, "pay-1");
    let mut tx = DB::begin(&fresh.pool).await;
    let answer = DB::apply(&orders(), &mut tx, 1, &pay).await.unwrap();
    assert!(is_applied(&answer));
    drop(tx);
    assert_eq!(order(&fresh, 1).await, [1, 1]);
    assert!(is_applied(&apply(&fresh, 1, &pay).await));
}

// CASES N16
pub(crate) async fn ids_that_collations_confuse_are_apart<DB: Bed>(fresh: Fresh<DB>) {
    let table = "CREATE TABLE papers (id TEXT_KEY NOT NULL PRIMARY KEY, \
                 status INTEGER NOT NULL, version BIGINT NOT NULL)";
    let papers = Transition::<Order>::on("papers").log("paper_event");
    papers.migrate(&fresh.pool).await.unwrap();
    DB::execute(&fresh.pool, &table.replace("TEXT_KEY", DB::TEXT))
        .await
        .unwrap();
    let insert = "INSERT INTO papers VALUES ('Ordér-A', 1, 1)";
    DB::execute(&fresh.pool, insert).await.unwrap();
    let events = ["Pay-é", "pay-é", "Pay-e", "Pay-é ", "Pay-e\u{301}"];
    for (number, event) in (0..).zip(events) {
        let mut tx = DB::begin(&fresh.pool).await;
        let ask = ask(Order::Paid, event);
        let answer = DB::apply_text(&papers, &mut tx, "Ordér-A", &ask).await;
        DB::commit(tx).await.unwrap();
        match answer.unwrap() {
            Answer::Applied { .. } => assert_eq!(number, 0),
            Answer::Conflict { cause, .. } => assert_eq!(cause, Cause::OtherEvent, "{event}"),
            other => panic!("{event}: {other:?}"),
        }
    }
    // The log has the row's own id. A database that takes another one for it finds the event too.
    let mut tx = DB::begin(&fresh.pool).await;
    let ask = ask(Order::Paid, "Pay-é");
    let answer = DB::apply_text(&papers, &mut tx, "ordér-a", &ask).await;
    let answer = answer.unwrap();
    let is_right = matches!(answer, Answer::AlreadyThere { .. } | Answer::NotFound);
    assert!(is_right, "{answer:?}");
}

pub(crate) async fn tables_that_share_a_log_do_not_meet<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    DB::execute(&fresh.pool, &ORDERS.replace("orders", "refunds"))
        .await
        .unwrap();
    DB::execute(&fresh.pool, "INSERT INTO refunds VALUES (1, 1, 1)")
        .await
        .unwrap();
    let pay = ask(Order::Paid, "event-1");
    assert!(is_applied(&apply(&fresh, 1, &pay).await));
    let mut tx = DB::begin(&fresh.pool).await;
    let refunds = Transition::on("refunds");
    let answer = DB::apply(&refunds, &mut tx, 1, &pay).await.unwrap();
    assert!(is_applied(&answer), "{answer:?}");
}

pub(crate) async fn names_are_quoted_and_checked<DB: Bed>(fresh: Fresh<DB>) {
    let create = "CREATE TABLE 订单 (nr BIGINT NOT NULL PRIMARY KEY, \
                  state BIGINT NOT NULL, revision BIGINT NOT NULL)";
    DB::execute(&fresh.pool, create).await.unwrap();
    DB::execute(&fresh.pool, "INSERT INTO 订单 VALUES (1, 1, 1)")
        .await
        .unwrap();
    let table = || Transition::<Order>::on("订单");
    // A reserved word is a name like any other.
    let named = || {
        let named = table().id_column("nr").status_column("state");
        named.version_column("revision").log("order")
    };
    named().migrate(&fresh.pool).await.unwrap();
    let pay = ask(Order::Paid, "pay-1");
    let asked = async |orders: Transition<Order>| -> Answered {
        let mut tx = DB::begin(&fresh.pool).await;
        DB::apply(&orders, &mut tx, 1, &pay).await
    };
    assert!(is_applied(&asked(named()).await.unwrap()));

    // SQLite would take a column that is not there for a text, if it stood in `"`.
    let misspelt = asked(named().status_column("stat")).await;
    let is_refused = matches!(
        misspelt,
        Err(TransitionError::Sql(SqlError::Database { .. }))
    );
    assert!(is_refused, "{misspelt:?}");

    let long = "x".repeat(64);
    let bad = [
        "",
        "a.b.c",
        "x; DROP TABLE x",
        "a\"b",
        "a`b",
        "a b",
        "a'",
        ".",
        "a.",
        "a--",
        "?",
        &long,
    ];
    for name in bad {
        let name = || name.to_owned();
        for orders in [
            Transition::on(name()),
            named().log(name()),
            named().id_column(name()),
            named().status_column(name()),
            named().version_column(name()),
        ] {
            let answer = asked(orders).await;
            let is_refused = matches!(answer, Err(TransitionError::InvalidName { .. }));
            assert!(is_refused, "{}: {answer:?}", name());
        }
        let migrated = named().log(name()).migrate(&fresh.pool).await;
        assert!(matches!(migrated, Err(TransitionError::InvalidName { .. })));
    }

    for event in ["", " ", "\t", &"é".repeat(128)] {
        let mut tx = DB::begin(&fresh.pool).await;
        let answer = DB::apply(&named(), &mut tx, 1, &ask(Order::Shipped, event)).await;
        assert!(
            matches!(answer, Err(TransitionError::InvalidId { .. })),
            "{answer:?}"
        );
    }
    let mut tx = DB::begin(&fresh.pool).await;
    let longest = ask(Order::Shipped, &"x".repeat(255));
    let answer = DB::apply(&named(), &mut tx, 1, &longest).await;
    assert!(matches!(answer, Ok(Answer::Illegal { .. })), "{answer:?}");
}

pub(crate) async fn a_row_with_an_unknown_status_is_an_error<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    DB::execute(&fresh.pool, "UPDATE orders SET status = 4")
        .await
        .unwrap();
    let mut tx = DB::begin(&fresh.pool).await;
    let answer = DB::apply(&orders(), &mut tx, 1, &ask(Order::Paid, "pay-1")).await;
    let is_told = matches!(answer, Err(TransitionError::UnknownStatus { code: 4 }));
    assert!(is_told, "{answer:?}");
}

pub(crate) async fn an_id_of_two_rows_is_an_error<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 2).await;
    let by_version = orders().id_column("version");
    let mut tx = DB::begin(&fresh.pool).await;
    let answer = DB::apply(&by_version, &mut tx, 1, &ask(Order::Paid, "pay-1")).await;
    assert!(
        matches!(answer, Err(TransitionError::NotOneRow)),
        "{answer:?}"
    );
}

pub(crate) async fn two_migrations_at_once_make_one_log<DB: Bed>(fresh: Fresh<DB>) {
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let pool = fresh.pool.clone();
        tasks.spawn(async move { orders().migrate(&pool).await });
    }
    for migrated in tasks.join_all().await {
        migrated.unwrap();
    }
    assert_eq!(
        DB::numbers(&fresh.pool, "SELECT count(*) FROM state_event").await,
        [0]
    );
}
