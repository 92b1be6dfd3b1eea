//! Calls that are dropped after each of their polls, and what is left of them. Beside the schemes,
//! not in the suite of cancellation: there an engine is looked at, and here is none.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use idem_tests::body::dropped_after;
use sqlx::Transaction;
use tokio::time::timeout;

use crate::bed::{Bed, Fresh};

/// What no busy machine needs for a turn, but a connection out of step does.
const PATIENCE: Duration = Duration::from_mins(1);

/// A number that no turn has.
const REHEARSED: i64 = 1;

/// What becomes of the transaction around a call that was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Committed,
    RolledBack,
    Dropped,
}

/// Takes turns, each with a number of its own, in which a call is dropped after its first poll, after
/// its second, and so on until a turn says that the call has ended by itself; it has at least
/// `least` polls.
pub(crate) async fn sweep(least: usize, turn: impl AsyncFn(i64, usize) -> bool) {
    static NUMBERS: AtomicI64 = AtomicI64::new(REHEARSED + 1);
    let (mut polls, mut early) = (1, 0);
    loop {
        println!("dropped after {polls} polls");
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let has_ended = timeout(PATIENCE, Box::pin(turn(number, polls))).await;
        let has_ended = has_ended.expect("it is stuck");
        if has_ended && polls >= least {
            return;
        }
        if has_ended {
            // An answer may have been there at once, and spared a poll.
            early += 1;
            assert!(early < 20, "only {polls} polls");
            polls = 1;
        } else {
            polls += 1;
        }
    }
}

/// What is written beside the calls.
pub(crate) async fn with_notes<DB: Bed>(fresh: &Fresh<DB>) {
    let notes = "CREATE TABLE notes (id BIGINT NOT NULL)";
    DB::execute(&fresh.pool, notes).await.unwrap();
}

/// Whoever makes the call of a turn.
pub(crate) struct Caller<'a, DB: Bed> {
    pub(crate) number: i64,
    pub(crate) fresh: &'a Fresh<DB>,
    /// The same database, by one connection, on which nothing was prepared yet.
    pub(crate) one: Fresh<DB>,
}

impl<'a, DB: Bed> Caller<'a, DB> {
    pub(crate) fn new(fresh: &'a Fresh<DB>, number: i64) -> Self {
        let pool = fresh.pool.options().clone().max_connections(1);
        let pool = pool.connect_lazy_with((*fresh.pool.connect_options()).clone());
        let level = fresh.level;
        Self {
            number,
            fresh,
            one: Fresh { pool, level },
        }
    }

    /// Has the statements prepared where a call must not be dropped meanwhile.
    pub(crate) async fn rehearse<T>(
        &self,
        call: impl AsyncFn(&mut Transaction<'static, DB>, i64) -> T,
    ) {
        if !DB::PREPARES_IN_STEP {
            let mut tx = DB::begin(&self.one.pool).await;
            call(&mut tx, REHEARSED).await;
            tx.rollback().await.unwrap();
        }
    }

    /// Drops the call in a transaction that has something else to keep. Says what the call gave if
    /// it was not dropped, and whether the transaction was committed.
    pub(crate) async fn in_transaction<T>(
        &self,
        polls: usize,
        end: End,
        call: impl AsyncFn(&mut Transaction<'static, DB>, i64) -> T,
    ) -> (Option<T>, bool) {
        self.rehearse(&call).await;
        let note = format!("INSERT INTO notes VALUES ({})", self.number);
        let mut tx = DB::begin(&self.one.pool).await;
        DB::within(&mut tx, &note).await.unwrap();
        let ended = dropped_after(polls, call(&mut tx, self.number)).await;
        // It may be told the error that was on its way to the call.
        let is_kept = end == End::Committed && DB::within(&mut tx, &note).await.is_ok();
        if is_kept {
            tx.commit().await.unwrap();
        } else if end == End::Dropped {
            drop(tx);
        } else {
            tx.rollback().await.unwrap();
        }
        self.is_served_again().await;
        let notes = self.notes(self.number).await;
        assert_eq!(notes, if is_kept { 2 } else { 0 }, "notes");
        (ended, is_kept)
    }

    /// The connection comes back, in no transaction, and as any other.
    pub(crate) async fn is_served_again(&self) {
        let note = format!("INSERT INTO notes VALUES ({})", -self.number);
        DB::execute(&self.one.pool, &note).await.unwrap();
        let notes = self.notes(-self.number).await;
        assert_eq!(notes, 1, "a transaction is open");
        let settings = DB::numbers(&self.one.pool, DB::SETTINGS).await;
        assert_eq!(settings, DB::numbers(&self.fresh.pool, DB::SETTINGS).await);
    }

    /// As others see them.
    async fn notes(&self, number: i64) -> i64 {
        let count = format!("SELECT count(*) FROM notes WHERE id = {number}");
        DB::numbers(&self.fresh.pool, &count).await[0]
    }
}
