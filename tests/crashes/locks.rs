//! Locks: wherever their holder dies, the next one has it, at once or when the lease is over.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use idem_core::Key;
use idem_tests::long::report;
use idem_tests::mortal::lease::{LEASE, LOCKS};
use idem_tests::mortal::{Body, Mode, Point};
use sqlx::{MySql, Postgres};

use crate::host::{Host, InTable, OnRedis, kill_at};
use crate::kills;
use crate::mortal::{SOON, Sends};
use crate::table::Verdict::{self, AfterLease, Free};

const HOLDS: Mode = Mode {
    rerun: false,
    body: Body::Locks,
};

/// Of two verdicts a race decides.
const TABLE: [(Point, &[Verdict]); 6] = [
    (Point::ClaimSent, &[Free, AfterLease]),
    (Point::ClaimDone, &[AfterLease]),
    (Point::Claimed, &[AfterLease]),
    (Point::SettleSent, &[Free, AfterLease]),
    (Point::SettleDone, &[Free]),
    (Point::Settled, &[Free]),
];

/// Every second kill is in the second of `hosts`.
// L01
async fn the_lock_of_a_holder_that_died_is_had_by_the_next<H: Host>(store: &str, hosts: [&H; 2]) {
    let kills = kills(5, 50);
    let sends = [RefCell::<Sends>::default(), RefCell::default()];
    for (point, claimed) in TABLE {
        let mut deaths = Vec::new();
        for kill in 0..kills {
            let (host, sends) = (hosts[kill % 2], &sends[kill % 2]);
            let (number, began) = kill_at(host, point, HOLDS, (kill, kills), sends).await;
            deaths.push((host, number, began));
        }
        let mut seen = BTreeMap::<Verdict, usize>::new();
        for (host, number, began) in deaths {
            let verdict = next(host, number, began).await;
            assert!(claimed.contains(&verdict), "{store}, {point}: {verdict}");
            *seen.entry(verdict).or_default() += 1;
        }
        let seen: Vec<_> = seen
            .iter()
            .map(|(verdict, count)| format!("{verdict} {count}"))
            .collect();
        let seen = seen.join(", ");
        report("crashes", format_args!("lock, {store}, {point}: {seen}"));
    }
}

/// How the next one comes to the lock.
async fn next(host: &impl Host, number: i64, began: Instant) -> Verdict {
    let key = Key::new(LOCKS, number).unwrap();
    let lock = host.engine().idem().lock(key).lease(LEASE).wait(SOON);
    let lock = lock.acquire().await.unwrap();
    let verdict = if lock.is_takeover() {
        assert!(began.elapsed() >= LEASE);
        AfterLease
    } else {
        Free
    };
    lock.release().await.unwrap();
    verdict
}

mod on {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn redis_the_lock_of_a_holder_that_died_is_had_by_the_next() {
        let host = OnRedis::new().await;
        the_lock_of_a_holder_that_died_is_had_by_the_next("Redis", [&host; 2]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres_the_lock_of_a_holder_that_died_is_had_by_the_next() {
        let host = InTable::<Postgres>::new().await;
        the_lock_of_a_holder_that_died_is_had_by_the_next("PostgreSQL", [&host; 2]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn mariadb_the_lock_of_a_holder_that_died_is_had_by_the_next() {
        let host = InTable::<MySql>::new().await;
        the_lock_of_a_holder_that_died_is_had_by_the_next("MariaDB", [&host; 2]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite_the_lock_of_a_holder_that_died_is_had_by_the_next() {
        let [one, other] = InTable::one_with_each_journal().await;
        let store = "SQLite, each journal for half of them";
        the_lock_of_a_holder_that_died_is_had_by_the_next(store, [&one, &other]).await;
    }
}
