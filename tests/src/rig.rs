//! An engine over a faulty store on a clock that the test moves.
#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::new_without_default,
    reason = "for tests only, where what does not work panics"
)]

use std::future::Future;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

pub use crate::body::{Bodies, Held, dropped_after, until};
use crate::faulty::Faulty;
use idem_core::engine::{Builder, Changes, Counts, RecordView, Running};
use idem_core::record::{Op, Outcome, Status};
use idem_core::store::memory::ManualClock;
use idem_core::store::{MemoryStore, StoreKey};
use idem_core::{Error, Idempotency, Key, Policy};
use tokio::task::JoinHandle;

/// The store that the tests make fail.
pub type Faults = Faulty<MemoryStore<ManualClock>>;

/// How long one store call may take in these tests.
pub const LIMIT: Duration = Duration::from_millis(100);

/// The shortest lease that a function may ask for.
pub const LEASE: Duration = Duration::from_secs(1);

/// An engine, its store, and the store's clock. Clones share everything.
#[derive(Debug, Clone)]
pub struct Rig {
    /// The engine.
    pub idem: Idempotency,
    /// Its store.
    pub store: Faults,
    /// The store's clock.
    pub clock: ManualClock,
}

impl Rig {
    /// A rig with the usual options.
    pub fn new() -> Self {
        Self::with(|builder| builder)
    }

    /// A rig whose engine has `options`.
    pub fn with(options: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = ManualClock::new();
        let store = Faulty::new(MemoryStore::with_clock(clock.clone()));
        let builder = Idempotency::builder(store.clone()).limit(LIMIT);
        let idem = options(builder).build().unwrap();
        Self { idem, store, clock }
    }

    /// Another engine on the same store, as in another process.
    #[must_use]
    pub fn beside(&self, options: impl FnOnce(Builder) -> Builder) -> Self {
        let builder = Idempotency::builder(self.store.clone()).limit(LIMIT);
        Self {
            idem: options(builder).build().unwrap(),
            ..self.clone()
        }
    }

    /// Runs `body` for the key `A`.
    pub async fn run<F>(&self, policy: Policy, body: impl FnOnce() -> F) -> Result<u32, Error>
    where
        F: Future<Output = Result<u32, Error>>,
    {
        self.idem.run(key(), policy, body).await
    }

    /// Runs a body that only counts.
    pub async fn count(&self, policy: Policy, bodies: &Bodies) -> Result<u32, Error> {
        self.run(policy, async || Ok(bodies.add())).await
    }

    /// Runs a body that stays at `held` in a task of its own, and waits until it is there.
    pub async fn hold(&self, policy: Policy, held: &Held) -> JoinHandle<Result<u32, Error>> {
        let (rig, body) = (self.clone(), held.clone());
        let call = tokio::spawn(async move {
            rig.run(policy, async || {
                body.stay().await;
                Ok(1)
            })
            .await
        });
        held.entered().await;
        call
    }

    /// The record of the key `A`.
    pub async fn record(&self) -> Option<RecordView> {
        self.idem.peek(&key()).await.unwrap()
    }

    /// The status of the key `A`.
    pub async fn status(&self) -> Option<Status> {
        self.record().await.map(|record| record.status)
    }

    /// Whether an attempt has the key, and has not been given up.
    pub async fn is_live(&self) -> bool {
        let running = self.running().await;
        running.is_some_and(|running| !running.is_abandoned)
    }

    /// Whether an attempt had the key, and has gone.
    pub async fn is_abandoned(&self) -> bool {
        let running = self.running().await;
        running.is_some_and(|running| running.is_abandoned)
    }

    /// Whether somebody waits for the attempt on the key `A`.
    pub async fn has_waiters(&self) -> bool {
        self.running().await.is_some_and(|running| running.waiters)
    }

    /// The attempt on the key `A`.
    pub async fn running(&self) -> Option<Running> {
        self.record().await?.running
    }

    /// Waits until nothing goes on in the background; panics if something does not end.
    ///
    /// The store's time passes meanwhile, if it takes any: a give-up goes on until its claim is
    /// late, and how late that is depends on when this machine found time to send it.
    pub async fn until_idle(&self) {
        const LONG: Duration = Duration::from_secs(10);
        let begin = Instant::now();
        let (waits, is_over) = std::sync::mpsc::channel::<()>();
        let clock = self.clock.clone();
        let passing = std::thread::spawn(move || {
            while is_over.recv_timeout(LIMIT / 2) == Err(RecvTimeoutError::Timeout) {
                clock.advance(LIMIT / 2);
            }
        });
        assert_eq!(self.idem.drain(LONG).await, 0);
        drop(waits);
        passing.join().unwrap();
        assert!(begin.elapsed() < LONG, "something does not end");
    }

    /// The store loses the record, as after an eviction or a fail-over.
    pub async fn lose(&self) {
        self.damage();
        let lost = self.idem.forget(&key()).force().await.unwrap();
        assert_eq!(lost, Changes::Done);
    }

    /// Somebody else's bytes stand at the key.
    pub fn damage(&self) {
        self.store.inner().damage(&store_key());
    }

    /// Waits until the attempt on the key `A` has been given up.
    pub async fn until_abandoned(&self) {
        until("it is abandoned", async || self.is_abandoned().await).await;
    }

    /// What the engine counted.
    pub fn counts(&self) -> Counts {
        self.idem.counts()
    }

    /// The outcomes that were sent to the store, in order.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let settled = |op| match op {
            Op::Settle(settle) => Some(settle.outcome),
            _ => None,
        };
        self.store.seen().into_iter().filter_map(settled).collect()
    }
}

/// The key `A`.
#[must_use]
pub fn key() -> Key {
    Key::new("test", "A").unwrap()
}

/// Where the store keeps the key `A`.
#[must_use]
pub fn store_key() -> StoreKey {
    StoreKey::new("idem", &key()).unwrap()
}

/// A failure of the body's own.
#[must_use]
pub fn failure() -> Error {
    Error::MissingKey {
        part: "the body's own failure".into(),
    }
}

/// Whether it is that one.
#[must_use]
pub fn is_failure(result: &Result<u32, Error>) -> bool {
    matches!(result, Err(Error::MissingKey { part }) if part == "the body's own failure")
}
