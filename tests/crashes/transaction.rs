//! Transaction mode: wherever the process dies, effect and record are both there or both absent,
//! and the next caller has the effect once.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use idem_core::{Error, Idempotency, Key, MemoryStore, Outcome, Policy, observe};
use idem_tests::body::until;
use idem_tests::long::report;
use idem_tests::mortal::Point;
use idem_tests::mortal::base::Kept;
use idem_tests::mortal::places::{Journal, Place, Placed, postgres_at, sqlite_with};
use idem_tests::mortal::transaction::{PREFIX, pay};
use sqlx::{MySql, Postgres};
use tokio::sync::oneshot;

use crate::kills;
use crate::mortal::{End, Mortal, Order, Sends, dies_of_itself, fresh_number, unit};

const POINTS: [Point; 8] = [
    Point::Begun,
    Point::ClaimSent,
    Point::Claimed,
    Point::Effect,
    Point::RecordSent,
    Point::Written,
    Point::CommitSent,
    Point::CommitDone,
];

/// Of each point, how often the dead process left nothing, and how often both.
type Tally = BTreeMap<Point, [usize; 2]>;

/// One of two that kill processes side by side, each in a place of its own.
struct Killer<D: Placed> {
    place: Place<D>,
    /// A transaction goes on seeing what it saw first: who has waited for a commit begins again.
    has_one_snapshot: bool,
    idem: Idempotency,
    tally: Tally,
    sends: Sends,
}

// E09
async fn effect_and_record_are_both_there_or_both_absent<D: Placed>(
    name: &str,
    mut one: Killer<D>,
    mut other: Killer<D>,
) {
    let kills = kills(100, 200) / 2;
    tokio::join!(one.kill(kills), other.kill(kills));
    let mut table = format!("\n| {name}, tx | nothing | both |\n|---|---|---|\n");
    for point in POINTS {
        let sum = |left: usize| one.tally[&point][left] + other.tally[&point][left];
        writeln!(table, "| {point} | {} | {} |", sum(0), sum(1)).unwrap();
    }
    report("crashes", table);
    let sends = one.sends.and(other.sends);
    report("crashes", sends.show(&format!("{name}, tx"), unit::<D>()));
}

impl<D: Placed> Killer<D> {
    async fn new() -> Self {
        Self::at(D::place().await, false)
    }

    fn at(place: Place<D>, has_one_snapshot: bool) -> Self {
        Self {
            place,
            has_one_snapshot,
            // Its store is never asked.
            idem: Idempotency::builder(MemoryStore::new()).build().unwrap(),
            tally: Tally::new(),
            sends: Sends::default(),
        }
    }

    async fn kill(&mut self, kills: usize) {
        for point in POINTS {
            for kill in 0..kills {
                let left = self.kill_one(point, kill, kills).await;
                self.tally.entry(point).or_default()[usize::from(left)] += 1;
            }
        }
    }

    /// Whether the dead process left its effect and its record.
    async fn kill_one(&mut self, point: Point, kill: usize, kills: usize) -> bool {
        let is_meanwhile = kill % 2 == 1 && !dies_of_itself(point);
        let (number, mortal) = loop {
            let (number, order) = (fresh_number(), (point, None));
            let nth = self.sends.nth(order, kill, kills);
            let mortal = Mortal::start(Order {
                mode: None,
                url: &self.place.url,
                number,
                point,
                nth,
                ledger: Path::new(""),
            });
            let mortal = mortal.await;
            mortal.arrives().await;
            if is_meanwhile {
                break (number, Some(mortal));
            }
            if self.sends.learn(order, nth, &mortal.dies().await) {
                break (number, None);
            }
        };
        let left = if let Some(mortal) = mortal {
            if kill == 1 {
                self.is_told(number, point).await;
            }
            self.ask_while_it_dies(mortal, number).await;
            false
        } else {
            self.look_and_ask(number, point).await
        };
        assert_eq!(self.kept(number).await, BOTH, "{point}, kill {kill}");
        let (_, outcome) = self.ask(number, None).await;
        assert_eq!(outcome, Outcome::Replayed, "{point}, kill {kill}");
        left
    }

    async fn look_and_ask(&self, number: i64, point: Point) -> bool {
        let seen = self.kept(number).await;
        assert!(seen == BOTH || seen == NOTHING, "{point}: {seen:?}");
        let (_, outcome) = self.ask(number, None).await;
        let left = outcome != Outcome::Executed;
        match point {
            // What has left may be done after the look.
            Point::CommitSent => assert!(left || seen == NOTHING),
            Point::CommitDone => assert!(left && seen == BOTH, "{seen:?}, {outcome:?}"),
            _ => assert!(!left && seen == NOTHING, "{point}: {seen:?}, {outcome:?}"),
        }
        left
    }

    /// A duplicate that does not wait hears of the transaction that has the key.
    async fn is_told(&self, number: i64, point: Point) {
        if !D::BEGINS_MEANWHILE || point == Point::Begun {
            return;
        }
        let key = Key::new(PREFIX, number).unwrap();
        let mut tx = D::begin(&self.place.pool).await.unwrap();
        let body = async |_: &mut sqlx::Transaction<'_, D>| Ok(());
        let told = self.idem.run_in(&mut tx, key, Policy::new(), body).await;
        assert!(matches!(told, Err(Error::InProgress { .. })), "{told:?}");
        tx.commit().await.unwrap();
    }

    /// A duplicate that waits has its turn when the first is dead.
    async fn ask_while_it_dies(&self, mortal: Mortal, number: i64) {
        let (begun, session) = oneshot::channel();
        let death = async {
            if D::BEGINS_MEANWHILE {
                let session: i64 = session.await.unwrap();
                let waits = async || {
                    let waits = D::waits(&self.place.pool, session).await.unwrap();
                    waits || self.kept(number).await == BOTH
                };
                until("the duplicate waits", waits).await;
            }
            assert_eq!(mortal.dies().await, End::AtItsPoint);
        };
        let ((_, outcome), ()) = tokio::join!(self.ask(number, Some(begun)), death);
        assert_eq!(outcome, Outcome::Executed);
    }

    async fn ask(&self, number: i64, mut begun: Option<oneshot::Sender<i64>>) -> (u32, Outcome) {
        loop {
            let mut tx = D::begin(&self.place.pool).await.unwrap();
            if let Some(begun) = begun.take() {
                let _ = begun.send(D::session(&mut tx).await.unwrap());
            }
            let (who, outcome) = observe(pay(&self.idem, &mut tx, number)).await;
            match who {
                Ok(who) => {
                    tx.commit().await.unwrap();
                    return (who, outcome);
                }
                Err(error) => assert!(self.has_one_snapshot && is_retryable(&error), "{error:?}"),
            }
        }
    }

    async fn kept(&self, number: i64) -> Kept {
        D::kept(&self.place.pool, number).await.unwrap()
    }
}

fn is_retryable(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(Error::is_retryable)
}

const NOTHING: Kept = Kept {
    effects: 0,
    records: 0,
    successes: 0,
};
const BOTH: Kept = Kept {
    effects: 1,
    records: 1,
    successes: 1,
};

mod on {
    use super::*;

    async fn usually<D: Placed>() {
        let killers = (Killer::<D>::new().await, Killer::new().await);
        effect_and_record_are_both_there_or_both_absent(D::NAME, killers.0, killers.1).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres_effect_and_record_are_both_there_or_both_absent() {
        usually::<Postgres>().await;
    }

    /// Where a claim writes the record, which a row that it can not see refuses.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres_at_higher_levels_effect_and_record_are_both_there_or_both_absent() {
        let killer = async |level| Killer::at(postgres_at(level).await, true);
        let one = killer("repeatable read").await;
        let other = killer("serializable").await;
        let name = "PostgreSQL at REPEATABLE READ and SERIALIZABLE, each for half of them";
        effect_and_record_are_both_there_or_both_absent(name, one, other).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn mariadb_effect_and_record_are_both_there_or_both_absent() {
        usually::<MySql>().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite_effect_and_record_are_both_there_or_both_absent() {
        let killer = async |journal| Killer::at(sqlite_with(journal).await, false);
        let one = killer(Journal::WriteAhead).await;
        let other = killer(Journal::Rollback).await;
        let name = "SQLite, each journal for half of them";
        effect_and_record_are_both_there_or_both_absent(name, one, other).await;
    }
}
