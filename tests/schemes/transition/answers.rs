//! Which answer an event gets.

use idem_core::states::{Answer, Cause, Transition};

use super::{
    ORDERS, Order, apply, ask, at_once, conflict, is_applied, of_version, order, orders,
    with_orders,
};
use crate::bed::{Bed, Fresh};

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
    // What made the change, and that alone, is in the log, and can not be there twice.
    let logged = "SELECT count(*), count(CASE WHEN entity = 'orders' AND entity_id = '1' \
         AND event = 'pay-1' AND from_status = 1 AND to_status = 2 AND version = 2 THEN 1 END) \
         FROM state_event";
    assert_eq!(DB::numbers(&fresh.pool, logged).await, [1, 1]);
    let twice = "INSERT INTO state_event (entity, entity_id, event, from_status, to_status, version) \
         SELECT entity, entity_id, event, 2, 3, 3 FROM state_event";
    let error = DB::execute(&fresh.pool, twice).await.unwrap_err();
    let error = error.as_database_error().unwrap();
    assert!(error.is_unique_violation(), "{error:?}");
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

/// The log has that status, of another order and of another table: nobody has paid twice.
pub(crate) async fn what_others_have_reached_is_no_conflict<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 2).await;
    DB::execute(&fresh.pool, &ORDERS.replace("orders", "refunds"))
        .await
        .unwrap();
    DB::execute(&fresh.pool, "INSERT INTO refunds VALUES (2, 1, 1)")
        .await
        .unwrap();
    assert!(is_applied(
        &apply(&fresh, 1, &ask(Order::Paid, "pay-1")).await
    ));
    let mut tx = DB::begin(&fresh.pool).await;
    let refunds = Transition::on("refunds");
    let refunded = DB::apply(&refunds, &mut tx, 2, &ask(Order::Paid, "pay-2")).await;
    assert!(is_applied(&refunded.unwrap()));
    DB::commit(tx).await.unwrap();

    let cancel = ask(Order::Cancelled, "cancel-2");
    assert!(is_applied(&apply(&fresh, 2, &cancel).await));
    let illegal = Answer::Illegal {
        current: Order::Cancelled,
        version: 2,
    };
    let late = ask(Order::Paid, "pay-3");
    assert_eq!(apply(&fresh, 2, &late).await, illegal);
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
