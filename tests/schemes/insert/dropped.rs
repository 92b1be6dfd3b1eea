//! Inserts that are dropped after each of their polls.

use idem_tests::body::dropped_after;
use sqlx::{Postgres, Transaction};

use super::{NAME, alone, bill, with_bills};
use crate::bed::{Bed, Bill, Billed, Fresh};
use crate::dropped::{Caller, End, sweep, with_notes};

/// One for the insert, one for the select, and the last.
const LEAST: usize = 3;

fn of(number: i64) -> Bill {
    bill(&format!("r-{number}"), &format!("n-{number}"))
}

async fn billed<DB: Bed>(tx: &mut Transaction<'static, DB>, number: i64) -> Billed {
    DB::bill(tx, NAME, &of(number)).await
}

async fn rows<DB: Bed>(fresh: &Fresh<DB>, number: i64) -> i64 {
    let count = format!("SELECT count(*) FROM bills WHERE request_id = 'r-{number}'");
    DB::numbers(&fresh.pool, &count).await[0]
}

/// Looks at what is left, and makes the call again; whether the first had ended.
async fn is_there_once<DB: Bed>(
    caller: &Caller<'_, DB>,
    was_there: bool,
    is_kept: bool,
    ended: Option<Billed>,
) -> bool {
    let (fresh, number) = (caller.fresh, caller.number);
    let left = rows(fresh, number).await;
    assert!(
        is_kept || was_there || left == 0,
        "what was rolled back is there"
    );
    assert!(left == 1 || !was_there && left == 0, "{left} rows");
    let has_ended = ended.is_some();
    if let Some(billed) = ended {
        assert_eq!(billed.unwrap().is_new(), !was_there);
        assert_eq!(left == 1, was_there || is_kept);
    }
    let again = alone(&caller.one, NAME, &of(number)).await.unwrap();
    assert_eq!(again.is_new(), left == 0);
    assert_eq!(again.into_row().1, of(number).number);
    assert_eq!(rows(fresh, number).await, 1);
    has_ended
}

async fn leaves_one_row_or_none<DB: Bed>(
    fresh: &Fresh<DB>,
    was_there: bool,
    end: End,
    call: impl AsyncFn(&mut Transaction<'static, DB>, i64) -> Billed,
) {
    sweep(LEAST, async |number, polls| {
        if was_there {
            alone(fresh, NAME, &of(number)).await.unwrap();
        }
        let caller = Caller::new(fresh, number);
        let (ended, is_kept) = caller.in_transaction(polls, end, &call).await;
        // Only of a row in the way can an error be on its way.
        assert!(was_there || is_kept == (end == End::Committed));
        is_there_once(&caller, was_there, is_kept, ended).await
    })
    .await;
}

pub(crate) async fn an_insert_that_is_dropped_anywhere_is_there_if_it_is_kept_at_all<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_bills(&fresh).await;
    with_notes(&fresh).await;
    for end in [End::Committed, End::RolledBack, End::Dropped] {
        leaves_one_row_or_none(&fresh, false, end, billed::<DB>).await;
    }
}

/// Who rolls back by a call of sqlx may be told the error instead, as by any next statement; whoever
/// then drops the transaction has rolled it back.
pub(crate) async fn a_row_that_is_there_stays_alone_wherever_an_insert_is_dropped<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_bills(&fresh).await;
    with_notes(&fresh).await;
    for end in [End::Committed, End::Dropped] {
        leaves_one_row_or_none(&fresh, true, end, billed::<DB>).await;
    }
}

pub(crate) async fn an_insert_that_is_dropped_outside_of_a_transaction_is_done_or_not<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_bills(&fresh).await;
    with_notes(&fresh).await;
    for was_there in [false, true] {
        sweep(LEAST, async |number, polls| {
            let one = of(number);
            if was_there {
                alone(&fresh, NAME, &one).await.unwrap();
            }
            let caller = Caller::new(&fresh, number);
            caller.rehearse(billed::<DB>).await;
            let mut connection = caller.one.pool.acquire().await.unwrap();
            let ended = dropped_after(polls, DB::bill(&mut connection, NAME, &one)).await;
            drop(connection);
            caller.is_served_again().await;
            is_there_once(&caller, was_there, true, ended).await
        })
        .await;
    }
}

/// On a connection of its own: the only one of those who look, so that they look when it is done.
pub(crate) async fn an_insert_beside_the_transaction_is_found_out(fresh: Fresh<Postgres>) {
    with_bills(&fresh).await;
    with_notes(&fresh).await;
    let beside = Caller::new(&fresh, 0).one;
    leaves_one_row_or_none(&beside, false, End::RolledBack, async |_, number| {
        alone(&beside, NAME, &of(number)).await
    })
    .await;
}
