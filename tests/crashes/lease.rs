//! Lease mode: what the next caller gets, and that no effect is had twice at hold.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use idem_core::{Error, Outcome, observe};
use idem_tests::long::report;
use idem_tests::mortal::lease::{Call, LEASE};
use idem_tests::mortal::{Body, Failed, Mode, Point, forms};
use sqlx::{MySql, Postgres};

use crate::host::{Host, InTable, OnRedis, kill_at};
use crate::kills;
use crate::mortal::{SOON, Sends};
use crate::table::{FAILING, SUCCEEDING, Seen, TOKENS, Table, Verdict};

/// A key whose owner has died.
struct Death {
    number: i64,
    point: Point,
    mode: Mode,
    /// Before its claim.
    began: Instant,
    effects: usize,
    /// What the first who asked was given, if it was not to wait.
    answer: Option<Verdict>,
}

/// Every second kill is in the second of `hosts`.
// E09
async fn what_becomes_of_a_key_is_as_the_table_says<H: Host, const N: usize>(
    store: &str,
    hosts: [&H; 2],
    table: &Table<N>,
) {
    let half = async |index: usize| {
        let (host, sends) = (hosts[index], RefCell::default());
        let mut deaths = Vec::new();
        for (point, mode, _) in table.cells(|mode| is_for(host, mode)) {
            for kill in (index..kills_in(mode)).step_by(2) {
                let death = Box::pin(kill_one(host, point, mode, kill, &sends)).await;
                deaths.push(death);
            }
        }
        (deaths, sends.into_inner())
    };
    let ((deaths, sends), (others, more_sends)) = tokio::join!(half(0), half(1));
    let mut seen = Seen::default();
    for (host, deaths) in hosts.into_iter().zip([deaths, others]) {
        for death in deaths {
            seen.add(death.point, death.mode, judge(host, &death).await);
        }
    }
    let host = hosts[0];
    report("crashes", seen.show(store, table));
    report("crashes", sends.and(more_sends).show(store, host.unit()));
    for (point, mode, cell) in table.cells(|mode| is_for(host, mode)) {
        let others = seen.others(point, mode, cell);
        assert!(
            others.is_empty(),
            "{store}, {point}, {}: {others:?}",
            mode.name()
        );
    }
}

/// Of each point. Transactions, which are committed or not, die more often; failures and tokens less
/// often, which are what others are until they are settled.
fn kills_in(mode: Mode) -> usize {
    match mode.body {
        Body::SettlesIn => kills(25, 100),
        body if body.fails() || body.takes_a_token() => kills(3, 50),
        _ => kills(5, 50),
    }
}

fn is_for(host: &impl Host, mode: Mode) -> bool {
    host.settles_in() || mode.body != Body::SettlesIn
}

async fn kill_one(
    host: &impl Host,
    point: Point,
    mode: Mode,
    kill: usize,
    sends: &RefCell<Sends>,
) -> Death {
    let nth = (kill, kills_in(mode));
    let (number, began) = kill_at(host, point, mode, nth, sends).await;
    let effects = host.effects(mode, number).await;
    let mut death = Death {
        number,
        point,
        mode,
        began,
        effects,
        answer: None,
    };
    death.answer = ask(host, &death).await;
    death
}

/// None if a live attempt is in the way.
async fn ask(host: &impl Host, death: &Death) -> Option<Verdict> {
    let call = Call {
        engine: host.engine(),
        mode: death.mode,
        number: death.number,
    };
    let (result, outcome) = observe(host.run(call)).await;
    match (result, outcome) {
        (Ok(_), Outcome::Executed) => Some(Verdict::Free),
        (Ok(_), Outcome::Replayed) => Some(Verdict::Replay),
        (Ok(_), Outcome::Recovered) => Some(Verdict::Recovered),
        (Err(error), outcome) => match error.downcast_ref::<Error>() {
            Some(Error::InProgress { .. }) => None,
            Some(Error::OutcomeUnknown { .. }) => Some(Verdict::Unknown),
            Some(Error::TokenRejected { .. }) => Some(Verdict::Rejected),
            None if outcome == Outcome::Replayed && error.is::<Failed>() => Some(Verdict::Failed),
            _ => panic!("{}, {}: {error:?}", death.point, death.mode.name()),
        },
        (result, outcome) => panic!("{}: {result:?}, {outcome:?}", death.point),
    }
}

/// What becomes of the key in the end, which is long before the record expires.
async fn judge(host: &impl Host, death: &Death) -> Verdict {
    let (point, mode) = (death.point, death.mode);
    is_nobody_elses(host, death).await;
    let verdict = if let Some(verdict) = death.answer {
        verdict
    } else {
        // What the store knows to have ended keeps nobody waiting.
        assert!(!mode.body.fails() || point < Point::SettleDone, "{point}");
        insist(host, death).await
    };
    let effects = host.effects(mode, death.number).await;
    let had = death.effects;
    let context = format!("{point}, {}, {verdict}", mode.name());
    if mode.body != Body::SettlesIn {
        let is_done = point >= Point::Effect && !mode.body.fails_undone();
        assert_eq!(had, usize::from(is_done), "{context}");
    }
    let again = match verdict {
        Verdict::Replay => {
            assert_eq!(effects, 1, "{context}");
            verdict
        }
        Verdict::Unknown => {
            assert_eq!(effects, had, "{context}");
            verdict
        }
        Verdict::Failed | Verdict::Rejected => {
            assert_eq!((had, effects), (1, 1), "{context}");
            verdict
        }
        Verdict::Recovered => {
            assert_eq!((had, effects), (1, 1), "{context}");
            Verdict::Replay
        }
        Verdict::Free | Verdict::AfterLease => {
            assert_eq!(effects, had + 1, "{context}");
            assert!(had == 0 || mode.rerun, "{context}");
            match mode.body {
                Body::ForgetsToken => Verdict::Rejected,
                _ => Verdict::Replay,
            }
        }
    };
    assert_eq!(ask(host, death).await, Some(again), "{context}");
    is_nobody_elses(host, death).await;
    let in_the_end = host.effects(mode, death.number).await;
    assert_eq!(in_the_end, effects, "{context}");
    verdict
}

/// Whatever has become of a token, others have no use of it, and learn nothing.
// T07
async fn is_nobody_elses(host: &impl Host, death: &Death) {
    if death.mode.body.takes_a_token() {
        let stolen = forms::steal(host.engine(), host.ledger(), death.number).await;
        let told = stolen.unwrap_err();
        let is_rejected = matches!(
            told.downcast_ref::<Error>(),
            Some(Error::TokenRejected { .. })
        );
        assert!(is_rejected, "{}: {told:?}", death.point);
    }
}

async fn insist(host: &impl Host, death: &Death) -> Verdict {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(verdict) = ask(host, death).await {
            let waited = death.began.elapsed();
            return match verdict {
                Verdict::Unknown | Verdict::Recovered => {
                    // Its own word that nobody knows may have come behind the first look.
                    let may_say_so =
                        death.mode.body == Body::FailsInDoubt && death.point == Point::SettleSent;
                    assert!(may_say_so || waited >= LEASE, "{}: {waited:?}", death.point);
                    verdict
                }
                // Before that, only the lock of a transaction that died was in the way.
                Verdict::Free if waited >= LEASE => Verdict::AfterLease,
                verdict => verdict,
            };
        }
        assert!(Instant::now() < deadline, "{} is never free", death.point);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

mod on {
    use super::*;

    async fn redis<const N: usize>(table: &Table<N>) {
        let host = OnRedis::new().await;
        what_becomes_of_a_key_is_as_the_table_says("Redis", [&host; 2], table).await;
    }

    async fn postgres<const N: usize>(table: &Table<N>) {
        let host = InTable::<Postgres>::new().await;
        what_becomes_of_a_key_is_as_the_table_says("PostgreSQL", [&host; 2], table).await;
    }

    async fn mariadb<const N: usize>(table: &Table<N>) {
        let host = InTable::<MySql>::new().await;
        what_becomes_of_a_key_is_as_the_table_says("MariaDB", [&host; 2], table).await;
    }

    async fn sqlite<const N: usize>(table: &Table<N>) {
        let [one, other] = InTable::one_with_each_journal().await;
        let store = "SQLite, each journal for half of them";
        what_becomes_of_a_key_is_as_the_table_says(store, [&one, &other], table).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn redis_what_becomes_of_a_key_is_as_the_table_says() {
        redis(&SUCCEEDING).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres_what_becomes_of_a_key_is_as_the_table_says() {
        postgres(&SUCCEEDING).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn mariadb_what_becomes_of_a_key_is_as_the_table_says() {
        mariadb(&SUCCEEDING).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite_what_becomes_of_a_key_is_as_the_table_says() {
        sqlite(&SUCCEEDING).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn redis_what_becomes_of_a_key_whose_body_failed_is_as_the_table_says() {
        redis(&FAILING).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres_what_becomes_of_a_key_whose_body_failed_is_as_the_table_says() {
        postgres(&FAILING).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn mariadb_what_becomes_of_a_key_whose_body_failed_is_as_the_table_says() {
        mariadb(&FAILING).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite_what_becomes_of_a_key_whose_body_failed_is_as_the_table_says() {
        sqlite(&FAILING).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn redis_what_becomes_of_a_token_is_as_the_table_says() {
        redis(&TOKENS).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres_what_becomes_of_a_token_is_as_the_table_says() {
        postgres(&TOKENS).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn mariadb_what_becomes_of_a_token_is_as_the_table_says() {
        mariadb(&TOKENS).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite_what_becomes_of_a_token_is_as_the_table_says() {
        sqlite(&TOKENS).await;
    }
}
