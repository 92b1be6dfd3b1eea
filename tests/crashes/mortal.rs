//! The test's end of `src/bin/mortal`: a process that dies at a point of its one call.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use idem_tests::mortal::base::Base;
use idem_tests::mortal::{Mode, Point};
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

    /// When this returns, it is dead.
    pub(crate) async fn dies(self) -> End {
        let (worker, by_itself) = (self.worker, dies_of_itself(self.point));
        let end = blocking(move || {
            if !by_itself {
                worker.kill().unwrap();
            }
            let end = worker.finish(SOON).unwrap();
            if end.success() {
                return End::Lived(worker.hear(SOON).unwrap().parse().unwrap());
            }
            assert_eq!(end.signal(), Some(9));
            End::AtItsPoint
        });
        end.await
    }
}

/// How a process has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    AtItsPoint,
    /// It was to die at a send that there was not. So many lie at its point.
    Lived(usize),
}

/// At which sends processes are killed: of those that lie at a point, at each in turn. How many there
/// are is what one has told that lived through them.
#[derive(Default)]
pub(crate) struct Sends {
    known: BTreeMap<(Point, Option<Mode>), usize>,
    /// How many processes were killed at each point after each send.
    kills: BTreeMap<Point, BTreeMap<usize, usize>>,
    lived: usize,
}

impl Sends {
    /// For the `kill`th of so many `kills`.
    pub(crate) fn nth(&self, order: (Point, Option<Mode>), kill: usize, kills: usize) -> usize {
        const MORE_THAN_THERE_ARE: usize = 1_000_000;
        let known = self.known.get(&order);
        known.map_or(MORE_THAN_THERE_ARE, |all| {
            1 + kill * (all - 1) / (kills - 1).max(1)
        })
    }

    /// A process that was to die at the `nth` send has ended so; whether it has died there.
    pub(crate) fn learn(&mut self, order: (Point, Option<Mode>), nth: usize, end: &End) -> bool {
        let End::Lived(all) = *end else {
            if counts_sends(order.0) {
                let kills = self.kills.entry(order.0).or_default();
                *kills.entry(nth).or_default() += 1;
            }
            return true;
        };
        self.known.insert(order, all.max(1));
        self.lived += 1;
        let kills: usize = self.kills.values().flat_map(BTreeMap::values).sum();
        assert!(self.lived < 200 + kills, "{} is not met", order.0);
        false
    }

    /// Those of both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        for (point, kills) in other.kills {
            let here = self.kills.entry(point).or_default();
            for (nth, count) in kills {
                *here.entry(nth).or_default() += count;
            }
        }
        self.lived += other.lived;
        self
    }

    /// The kills by send, or whatever is counted.
    pub(crate) fn show(&self, store: &str, unit: &str) -> String {
        let mut points = Vec::new();
        for (point, kills) in &self.kills {
            let last = kills.keys().max().copied().unwrap_or_default();
            let sum: usize = kills.values().sum();
            points.push(format!("{sum} at {point}, after up to {last} {unit}"));
        }
        let (points, lived) = (points.join("; "), self.lived);
        format!("{store}: {points}. {lived} processes lived through, and do not count")
    }
}

/// What is counted of what is sent to a database.
pub(crate) fn unit<D: Base>() -> &'static str {
    if D::BEGINS_MEANWHILE {
        "sends"
    } else {
        // It is in a file.
        "tenths of a millisecond"
    }
}

fn counts_sends(point: Point) -> bool {
    matches!(
        point,
        Point::ClaimSent
            | Point::CheckpointSent
            | Point::RecordSent
            | Point::CommitSent
            | Point::SettleSent
    )
}

/// Between two lines of a body nobody can stop and say so.
pub(crate) fn dies_of_itself(point: Point) -> bool {
    counts_sends(point)
        || matches!(
            point,
            Point::ClaimDone | Point::CheckpointDone | Point::CommitDone | Point::SettleDone
        )
}
