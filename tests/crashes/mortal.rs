//! The test's end of `src/bin/mortal`: a process that dies at a point of its one call.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use idem_tests::mortal::Point;
use idem_tests::mortal::lease::Mode;
use idem_tests::process::Worker;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::blocking;

/// Long enough for a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// As many as there are cores on a small machine, whatever runs beside.
static ALIVE: Semaphore = Semaphore::const_new(2);

/// A number that no other request has.
pub(crate) fn fresh_number() -> i64 {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What it is told.
pub(crate) struct Order<'a> {
    /// Of lease mode; without, it is transaction mode.
    pub(crate) mode: Option<Mode>,
    pub(crate) url: &'a str,
    pub(crate) number: i64,
    pub(crate) point: Point,
    /// Of the sends that lie at the point, which is its last.
    pub(crate) nth: usize,
    pub(crate) ledger: &'a Path,
}

impl Order<'_> {
    fn arguments(&self) -> [String; 6] {
        [
            self.mode.map_or("transaction".to_owned(), Mode::name),
            self.url.to_owned(),
            self.number.to_string(),
            self.point.to_string(),
            self.nth.to_string(),
            self.ledger.display().to_string(),
        ]
    }
}

pub(crate) struct Mortal {
    worker: Arc<Worker>,
    point: Point,
    pub(crate) started: Instant,
    _permit: SemaphorePermit<'static>,
}

impl Mortal {
    pub(crate) async fn start(order: Order<'_>) -> Self {
        let permit = ALIVE.acquire().await.unwrap();
        let started = Instant::now();
        let arguments = order.arguments();
        let worker = blocking(|| Worker::start(env!("CARGO_BIN_EXE_mortal"), arguments)).await;
        Self {
            worker: Arc::new(worker.unwrap()),
            point: order.point,
            started,
            _permit: permit,
        }
    }

    /// Waits until it is at its point, if it waits there to be killed.
    pub(crate) async fn arrives(&self) {
        if dies_of_itself(self.point) {
            return;
        }
        let worker = self.worker.clone();
        let heard = blocking(move || worker.hear(SOON)).await;
        assert_eq!(heard.unwrap(), "here", "at {}", self.point);
    }

    /// When this returns, it is dead and has died at its point.
    pub(crate) async fn dies(self) {
        let (worker, by_itself) = (self.worker, dies_of_itself(self.point));
        let signal = blocking(move || {
            if !by_itself {
                worker.kill().unwrap();
            }
            worker.finish(SOON).unwrap().signal()
        });
        assert_eq!(signal.await, Some(9), "at {}", self.point);
    }
}

/// Between two lines of a body nobody can stop and say so.
pub(crate) fn dies_of_itself(point: Point) -> bool {
    matches!(
        point,
        Point::ClaimSent
            | Point::ClaimDone
            | Point::CheckpointSent
            | Point::CheckpointDone
            | Point::RecordSent
            | Point::CommitSent
            | Point::CommitDone
            | Point::SettleSent
            | Point::SettleDone
    )
}
