//! Where the records of lease mode are, and what bodies do.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use idem_core::RedisStore;
use idem_tests::mortal::base::Base;
use idem_tests::mortal::lease::{Call, Engine, effects};
use idem_tests::mortal::places::{Journal, Place, Placed, sqlite_with};
use idem_tests::mortal::{Body, Mode, Point, forms};
use idem_tests::redis::{RedisOptions, RedisServer};
use sqlx::Sqlite;
use tempfile::TempDir;

use crate::mortal::{Mortal, Order, Sends, fresh_number, unit};

/// A store, and what bodies do with it.
pub(crate) trait Host {
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

pub(crate) struct OnRedis {
    _server: RedisServer,
    url: String,
    engine: Engine,
    ledger: Ledger,
}

impl OnRedis {
    pub(crate) async fn new() -> Self {
        let server = RedisServer::start(RedisOptions::new()).unwrap();
        let store = RedisStore::connect(&server.url()).await.unwrap();
        Self {
            url: server.url(),
            _server: server,
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

pub(crate) struct InTable<D: Base> {
    place: Place<D>,
    engine: Engine,
    ledger: Ledger,
}

impl<D: Placed> InTable<D> {
    pub(crate) async fn new() -> Self {
        Self::at(D::place().await)
    }

    fn at(place: Place<D>) -> Self {
        Self {
            engine: Engine::new(D::store(place.pool.clone())).unwrap(),
            place,
            ledger: Ledger::new(),
        }
    }
}

impl InTable<Sqlite> {
    /// Two, so that every second kill is in a file with the other journal.
    pub(crate) async fn one_with_each_journal() -> [Self; 2] {
        [
            Self::at(sqlite_with(Journal::WriteAhead).await),
            Self::at(sqlite_with(Journal::Rollback).await),
        ]
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

/// Kills a process at a point of its call, for the manieth time of so many; the number of its call, and
/// when it began, before its claim.
pub(crate) async fn kill_at(
    host: &impl Host,
    point: Point,
    mode: Mode,
    (kill, kills): (usize, usize),
    sends: &RefCell<Sends>,
) -> (i64, Instant) {
    let order = (point, Some(mode));
    loop {
        let number = fresh_number();
        if mode.body.takes_a_token() {
            let issued = forms::issue(host.engine(), host.ledger(), number).await;
            issued.unwrap();
        }
        let nth = sends.borrow().nth(order, kill, kills);
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
            return (number, began);
        }
    }
}
