//! Changes that are dropped after each of their polls.

use idem_core::states::Answer;
use idem_tests::body::dropped_after;
use sqlx::{Postgres, Transaction};

use super::{Order, apply, ask, is_applied, order, orders, with_orders};
use crate::bed::{Answered, Ask, Bed, Fresh};
use crate::dropped::{Caller, End, sweep, with_notes};

/// One for each statement.
const LEAST: usize = 4;

fn paid() -> Ask {
    ask(Order::Paid, "pay-1")
}

async fn pay<DB: Bed>(tx: &mut Transaction<'static, DB>, number: i64) -> Answered {
    DB::apply(&orders(), tx, number, &paid()).await
}

async fn with_order<DB: Bed>(fresh: &Fresh<DB>, number: i64) {
    let insert = format!("INSERT INTO orders VALUES ({number}, 1, 1)");
    DB::execute(&fresh.pool, &insert).await.unwrap();
}

/// Whether the change was made: once, and with its event, or there is neither.
async fn is_made<DB: Bed>(fresh: &Fresh<DB>, number: i64) -> bool {
    let row = order(fresh, number).await;
    let events = format!(
        "SELECT count(*), COALESCE(MAX(version), 0) FROM state_event WHERE entity_id = '{number}'"
    );
    let events = DB::numbers(&fresh.pool, &events).await;
    let is_made = row == [2, 2];
    assert!(is_made || row == [1, 1], "{row:?}");
    let expected: [i64; 2] = if is_made { [1, 2] } else { [0, 0] };
    assert_eq!(events, expected, "one without the other");
    is_made
}

async fn leaves_all_or_nothing<DB: Bed>(
    fresh: &Fresh<DB>,
    end: End,
    call: impl AsyncFn(&mut Transaction<'static, DB>, i64) -> Answered,
) {
    sweep(LEAST, async |number, polls| {
        with_order(fresh, number).await;
        let caller = Caller::new(fresh, number);
        let (ended, is_kept) = caller.in_transaction(polls, end, &call).await;
        let was_made = is_made(fresh, number).await;
        assert!(is_kept || !was_made, "what was rolled back is there");
        if let Some(answer) = &ended {
            assert!(answer.as_ref().is_ok_and(is_applied), "{answer:?}");
            assert_eq!(was_made, is_kept);
        }
        let again = apply(&caller.one, number, &paid()).await;
        let is_there = matches!(again, Answer::AlreadyThere { .. });
        let is_right = if was_made {
            is_there
        } else {
            is_applied(&again)
        };
        assert!(is_right, "made: {was_made}, then {again:?}");
        assert!(is_made(fresh, number).await);
        ended.is_some()
    })
    .await;
}

pub(crate) async fn a_change_that_is_dropped_anywhere_and_rolled_back_is_not_there<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_orders(&fresh, 1).await;
    with_notes(&fresh).await;
    for end in [End::RolledBack, End::Dropped] {
        leaves_all_or_nothing(&fresh, end, pay::<DB>).await;
    }
}

/// What nobody should do: the half of a change can stand in the transaction. An answer that comes at
/// once may hide it in one sweep.
pub(crate) async fn a_change_that_is_dropped_and_committed_is_found_out<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    with_notes(&fresh).await;
    for _ in 0..3 {
        leaves_all_or_nothing(&fresh, End::Committed, pay::<DB>).await;
    }
}

/// As one writes it by hand.
async fn pay_in_two_steps(tx: &mut Transaction<'static, Postgres>, number: i64) -> Answered {
    for step in [
        format!("UPDATE orders SET status = 2, version = 2 WHERE id = {number}"),
        format!(
            "INSERT INTO state_event (entity, entity_id, event, from_status, to_status, version) \
             VALUES ('orders', '{number}', 'pay-1', 1, 2, 2)"
        ),
    ] {
        let alone = format!("{step}; COMMIT; BEGIN");
        Postgres::within(tx, &alone).await.unwrap();
    }
    Ok(Answer::Applied {
        from: Order::Created,
        version: 2,
    })
}

pub(crate) async fn a_change_and_an_event_that_commit_apart_are_found_out(fresh: Fresh<Postgres>) {
    with_orders(&fresh, 1).await;
    with_notes(&fresh).await;
    leaves_all_or_nothing(&fresh, End::Committed, pay_in_two_steps).await;
}

/// The pool loses a connection that is out of step; the order is free for all others.
pub(crate) async fn a_change_that_is_dropped_while_it_is_prepared_is_rolled_back<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_orders(&fresh, 1).await;
    sweep(LEAST, async |number, polls| {
        with_order(&fresh, number).await;
        let caller = Caller::new(&fresh, number);
        let mut tx = DB::begin(&caller.one.pool).await;
        let ended = dropped_after(polls, pay(&mut tx, number)).await;
        drop(tx);
        let again = apply(&fresh, number, &paid()).await;
        assert!(is_applied(&again), "{again:?}");
        assert!(is_made(&fresh, number).await);
        ended.is_some()
    })
    .await;
}
