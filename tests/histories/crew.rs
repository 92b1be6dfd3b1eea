//! The worker processes of a campaign.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use fastrand::Rng;
use idem_tests::history::SWEEPER;
use idem_tests::process::Worker;

use crate::fault::{self, Fault};
use crate::size::Size;

const SOON: Duration = Duration::from_mins(1);

/// What every worker is told.
pub(crate) struct Orders<'a> {
    pub(crate) what: &'a str,
    pub(crate) url: String,
    pub(crate) folder: &'a Path,
    pub(crate) clients: usize,
    pub(crate) size: &'a Size,
}

pub(crate) struct Crew<'a> {
    orders: Orders<'a>,
    workers: Vec<Mutex<Worker>>,
    /// The number of the next one.
    next: AtomicU64,
}

impl<'a> Crew<'a> {
    pub(crate) fn start(count: usize, orders: Orders<'a>, dice: &mut Rng) -> Result<Self> {
        let next = AtomicU64::new(SWEEPER + 1);
        let worker = |_| Ok(Mutex::new(launch(&orders, take(&next), dice.u64(..))?));
        let workers = (0..count).map(worker).collect::<Result<_>>()?;
        Ok(Self {
            orders,
            workers,
            next,
        })
    }

    /// Does it to one of them, and makes up for it.
    pub(crate) fn suffer(&self, fault: Fault, dice: &mut Rng) -> Result<()> {
        let mut worker = lock(&self.workers[dice.usize(..self.workers.len())]);
        if let Some(end) = worker.ended()? {
            bail!("a worker ended by itself: {end}");
        }
        if fault == Fault::KilledWorker {
            worker.kill()?;
            *worker = launch(&self.orders, take(&self.next), dice.u64(..))?;
            return Ok(());
        }
        worker.freeze()?;
        fault::pass(dice, 100..2_500);
        worker.thaw()
    }

    /// Lets all calls come to an end. Their processes stay.
    pub(crate) fn rest(&self) -> Result<()> {
        for worker in &self.workers {
            lock(worker).say("stop")?;
        }
        self.workers
            .iter()
            .try_for_each(|worker| is_done(&lock(worker)))
    }

    pub(crate) fn leave(&self) -> Result<()> {
        self.workers
            .iter()
            .try_for_each(|worker| leaves(&lock(worker)))
    }
}

/// Has every key asked until it has an answer.
pub(crate) fn sweep(orders: &Orders<'_>) -> Result<()> {
    let sweeper = launch(orders, SWEEPER, 0)?;
    is_done(&sweeper)?;
    leaves(&sweeper)
}

fn is_done(worker: &Worker) -> Result<()> {
    let said = worker.hear(10 * SOON)?;
    ensure!(said == "done", "a worker said {said:?}");
    Ok(())
}

fn leaves(worker: &Worker) -> Result<()> {
    let end = worker.finish(SOON)?;
    ensure!(end.success(), "a worker ended: {end}");
    Ok(())
}

fn launch(orders: &Orders<'_>, number: u64, seed: u64) -> Result<Worker> {
    let folder = orders.folder.display().to_string();
    let arguments = [
        orders.what.to_owned(),
        orders.url.clone(),
        folder,
        seed.to_string(),
        number.to_string(),
        orders.clients.to_string(),
        orders.size.rest.as_millis().to_string(),
        orders.size.hot.to_string(),
        orders.size.per_key.to_string(),
    ];
    let worker = Worker::start(env!("CARGO_BIN_EXE_caller"), arguments)?;
    let said = worker.hear(SOON)?;
    ensure!(said == "ready", "a worker said {said:?}");
    Ok(worker)
}

fn take(next: &AtomicU64) -> u64 {
    next.fetch_add(1, Ordering::Relaxed)
}

fn lock(worker: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}
