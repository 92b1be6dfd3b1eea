//! Lease mode: what the next caller gets, and that no effect is had twice at hold.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use idem_core::{Error, Outcome, RedisStore, observe};
use idem_tests::long::report;
use idem_tests::mortal::Point;
use idem_tests::mortal::base::Base;
use idem_tests::mortal::lease::{Body, Call, Engine, LEASE, Mode, effects};
use idem_tests::mortal::places::{Place, Placed};
use idem_tests::redis::{RedisOptions, RedisServer};
use sqlx::{MySql, Postgres, Sqlite};
use tempfile::TempDir;

use crate::kills;
use crate::mortal::{Mortal, Order, SOON, Sends, fresh_number, unit};
use crate::table::{Seen, Verdict, cells};

/// A store, and what bodies do with it.
trait Host {
    fn url(&self) -> &str;

    fn engine(&self) -> &Engine;

    fn ledger(&self) -> &Path;

    fn settles_in(&self) -> bool;

    /// What is counted of what is sent.
    fn unit(&self) -> &'static str;

    async fn run(&self, call: Call<'_>) -> Result<u32>;

    /// How often the effect of a number has happened.
    async fn effects(&self, mode: Mode, number: i64) -> usize;
}

/// A file in which each effect is a line.
struct Ledger {
    file: PathBuf,
    _folder: TempDir,
}

impl Ledger {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            file: folder.path().join("ledger"),
            _folder: folder,
        }
    }

    fn effects(&self, number: i64) -> usize {
        effects(&self.file, number).unwrap()
    }
}

struct OnRedis {
    server: RedisServer,
    url: String,
    engine: Engine,
    ledger: Ledger,
}

impl OnRedis {
    async fn new() -> Self {
        let server = RedisServer::start(RedisOptions::new()).unwrap();
        let store = RedisStore::connect(&server.url()).await.unwrap();
        Self {
            url: server.url(),
            server,
            engine: Engine::new(store).unwrap(),
            ledger: Ledger::new(),
        }
    }
}

impl Host for OnRedis {
    fn url(&self) -> &str {
        &self.url
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn ledger(&self) -> &Path {
        &self.ledger.file
    }

    fn settles_in(&self) -> bool {
        false
    }

    fn unit(&self) -> &'static str {
        "sends"
    }

    async fn run(&self, call: Call<'_>) -> Result<u32> {
        call.with_a_ledger(self.ledger()).await
    }

    async fn effects(&self, _: Mode, number: i64) -> usize {
        self.ledger.effects(number)
    }
}

struct InTable<D: Base> {
    place: Place<D>,
    engine: Engine,
    ledger: Ledger,
}

impl<D: Placed> InTable<D> {
    async fn new() -> Self {
        let place = D::place().await;
        Self {
            engine: Engine::new(D::store(place.pool.clone())).unwrap(),
            place,
            ledger: Ledger::new(),
        }
    }
}

impl<D: Placed> Host for InTable<D> {
    fn url(&self) -> &str {
        &self.place.url
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn ledger(&self) -> &Path {
        &self.ledger.file
    }

    fn settles_in(&self) -> bool {
        true
    }

    fn unit(&self) -> &'static str {
        unit::<D>()
    }

    async fn run(&self, call: Call<'_>) -> Result<u32> {
        match call.mode.body {
            Body::SettlesIn => call.with_a_database(&self.place.pool).await,
            _ => call.with_a_ledger(self.ledger()).await,
        }
    }

    async fn effects(&self, mode: Mode, number: i64) -> usize {
        if mode.body != Body::SettlesIn {
            return self.ledger.effects(number);
        }
        let kept = D::kept(&self.place.pool, number).await.unwrap();
        assert_eq!(kept.effects, kept.successes, "{kept:?}");
        usize::try_from(kept.effects).unwrap()
    }
}

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

// E09
async fn what_becomes_of_a_key_is_as_the_table_says(store: &str, host: &impl Host) {
    let kills = kills(5, 50);
    let sends = RefCell::default();
    let half = async |kills: std::ops::Range<usize>| {
        let mut deaths = Vec::new();
        for (point, mode, _) in cells().filter(|(_, mode, _)| is_for(host, *mode)) {
            for kill in kills.clone() {
                let death = Box::pin(kill_one(host, point, mode, kill, &sends)).await;
                deaths.push(death);
            }
        }
        deaths
    };
    let (deaths, others) = tokio::join!(half(0..kills / 2), half(kills / 2..kills));
    let mut seen = Seen::default();
    for death in deaths.into_iter().chain(others) {
        seen.add(death.point, death.mode, judge(host, &death).await);
    }
    report("crashes", seen.show(store));
    report("crashes", sends.borrow().show(store, host.unit()));
    for (point, mode, cell) in cells().filter(|(_, mode, _)| is_for(host, *mode)) {
        let others = seen.others(point, mode, cell);
        assert!(
            others.is_empty(),
            "{store}, {point}, {}: {others:?}",
            mode.name()
        );
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
    let order = (point, Some(mode));
    let (number, began) = loop {
        let number = fresh_number();
        let nth = sends.borrow().nth(order, kill, kills(5, 50));
        let mortal = Mortal::start(Order {
            mode: Some(mode),
            url: host.url(),
            number,
            point,
            nth,
            ledger: host.ledger(),
        });
        let mortal = mortal.await;
        let began = mortal.started;
        mortal.arrives().await;
        let end = mortal.dies().await;
        if sends.borrow_mut().learn(order, nth, &end) {
            break (number, began);
        }
    };
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
        (Err(error), _) => match error.downcast_ref() {
            Some(Error::InProgress { .. }) => None,
            Some(Error::OutcomeUnknown { .. }) => Some(Verdict::Unknown),
            _ => panic!("{}, {}: {error:?}", death.point, death.mode.name()),
        },
        (result, outcome) => panic!("{}: {result:?}, {outcome:?}", death.point),
    }
}

/// What becomes of the key in the end, which is long before the record expires.
async fn judge(host: &impl Host, death: &Death) -> Verdict {
    let verdict = match death.answer {
        Some(verdict) => verdict,
        None => insist(host, death).await,
    };
    let effects = host.effects(death.mode, death.number).await;
    let had = death.effects;
    let context = format!("{}, {}, {verdict}", death.point, death.mode.name());
    match verdict {
        Verdict::Replay => assert_eq!(effects, 1, "{context}"),
        Verdict::Unknown => {
            assert_eq!(effects, had, "{context}");
            assert_eq!(ask(host, death).await, Some(Verdict::Unknown), "{context}");
        }
        Verdict::Recovered => {
            assert_eq!((had, effects), (1, 1), "{context}");
            assert_eq!(ask(host, death).await, Some(Verdict::Replay), "{context}");
        }
        Verdict::Free | Verdict::AfterLease => {
            assert_eq!(effects, had + 1, "{context}");
            assert!(had == 0 || death.mode.rerun, "{context}");
            assert_eq!(ask(host, death).await, Some(Verdict::Replay), "{context}");
        }
    }
    verdict
}

async fn insist(host: &impl Host, death: &Death) -> Verdict {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(verdict) = ask(host, death).await {
            let waited = death.began.elapsed();
            return match verdict {
                Verdict::Unknown | Verdict::Recovered => {
                    assert!(waited >= LEASE, "{}: {waited:?}", death.point);
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

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn redis_what_becomes_of_a_key_is_as_the_table_says() {
        let host = OnRedis::new().await;
        what_becomes_of_a_key_is_as_the_table_says("Redis", &host).await;
        drop(host.server);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres_what_becomes_of_a_key_is_as_the_table_says() {
        let host = InTable::<Postgres>::new().await;
        what_becomes_of_a_key_is_as_the_table_says("PostgreSQL", &host).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn mariadb_what_becomes_of_a_key_is_as_the_table_says() {
        let host = InTable::<MySql>::new().await;
        what_becomes_of_a_key_is_as_the_table_says("MariaDB", &host).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite_what_becomes_of_a_key_is_as_the_table_says() {
        let host = InTable::<Sqlite>::new().await;
        what_becomes_of_a_key_is_as_the_table_says("SQLite", &host).await;
    }
}
