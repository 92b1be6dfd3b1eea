//! Where histories are written: a file a key, to which every process appends.
//!
//! A line is written in one piece to a file opened for appending, so the kernel puts the lines of
//! all processes into one order, and a line is there before its writer goes on. That order is the
//! evidence: what stands before something else happened before it was over. The file is under no
//! fault, and is the ledger of the effects too.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use super::event::{Event, Finding, What};
use super::known::{Call, calls};

/// A worker's calls are numbered from this many times its own number.
pub const CALLS_PER_WORKER: u64 = 10_000_000;

/// The worker that asks every key at the end, when nothing is broken any more.
pub const SWEEPER: u64 = 0;

/// One worker's end of the histories in a folder.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// A byte for each operation of any worker.
    operations: File,
    next: AtomicU64,
}

impl Journal {
    /// The end of `worker`.
    pub fn open(folder: &Path, worker: u64) -> Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            operations: append(&folder.join(OPERATIONS))?,
            next: AtomicU64::new(worker * CALLS_PER_WORKER + 1),
        })
    }

    /// Counts an operation, and gives its call's number and how many there were before, of all
    /// workers together.
    pub fn count(&self) -> Result<(u64, u64)> {
        let before = self.operations.metadata()?.len();
        (&self.operations).write_all(b".")?;
        Ok((self.next.fetch_add(1, Ordering::Relaxed), before))
    }

    /// Writes that `what` happened to `call`.
    pub fn note(&self, key: u64, call: u64, what: What) -> Result<()> {
        write(&self.of(key)?, call, what)
    }

    /// The effect of an attempt with `fence`, unless a lookup has ruled it out: whether it
    /// happened. `None` while somebody else looks.
    pub fn happens_unless_ruled_out(
        &self,
        key: u64,
        call: u64,
        fence: u64,
    ) -> Result<Option<bool>> {
        let rules_out = |event: &Event| matches!(event.what, What::Found { fence: later, finding: Finding::NotDone } if later > fence);
        self.happens_unless(key, call, |events| events.iter().any(rules_out))
    }

    /// The effect of a holder with `fence`, unless one with a higher fence had its own before:
    /// whether it happened. `None` while somebody else writes.
    pub fn happens_in_order(&self, key: u64, call: u64, fence: u64) -> Result<Option<bool>> {
        self.happens_unless(key, call, |events| {
            let mut written = calls(events).into_iter().filter(Call::has_effect);
            written.any(|call| call.attempt().is_some_and(|(_, other)| other > fence))
        })
    }

    fn happens_unless(
        &self,
        key: u64,
        call: u64,
        is_barred: impl FnOnce(&[Event]) -> bool,
    ) -> Result<Option<bool>> {
        let file = self.of(key)?;
        if !is_locked(&file)? {
            return Ok(None);
        }
        if is_barred(&read(&self.folder, key)?) {
            write(&file, call, What::Barred)?;
            return Ok(Some(false));
        }
        write(&file, call, What::Happened)?;
        Ok(Some(true))
    }

    /// Looks the effect up, for an attempt with `fence`; if there is none, older attempts can not
    /// have it any more. `None` while somebody else looks.
    pub fn look_up(&self, key: u64, call: u64, fence: u64) -> Result<Option<Finding>> {
        let file = self.of(key)?;
        if !is_locked(&file)? {
            return Ok(None);
        }
        let effect = |event: Event| (event.what == What::Happened).then_some(event.call);
        let done = read(&self.folder, key)?.into_iter().find_map(effect);
        let finding = done.map_or(Finding::NotDone, Finding::Done);
        write(&file, call, What::Found { fence, finding })?;
        Ok(Some(finding))
    }

    fn of(&self, key: u64) -> Result<File> {
        append(&self.folder.join(format!("{KEY}{key}")))
    }
}

const OPERATIONS: &str = "operations";
const KEY: &str = "key-";

/// The monotonic clock of this machine, the same for all processes, in microseconds.
#[must_use]
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let [seconds, nanos] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000 + nanos / 1000
}

/// How many operations there were in a folder.
pub fn operations(folder: &Path) -> Result<u64> {
    Ok(append(&folder.join(OPERATIONS))?.metadata()?.len())
}

/// The keys that have a history, in order.
pub fn keys(folder: &Path) -> Result<Vec<u64>> {
    let mut keys = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if let Some(key) = name.to_str().and_then(|name| name.strip_prefix(KEY)) {
            keys.push(key.parse()?);
        }
    }
    keys.sort_unstable();
    Ok(keys)
}

/// The history of a key. What a killed process had begun to write is not in it.
pub fn read(folder: &Path, key: u64) -> Result<Vec<Event>> {
    let text = fs::read_to_string(folder.join(format!("{KEY}{key}")))?;
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .filter_map(|line| Event::read(line).transpose())
        .collect()
}

fn append(path: &Path) -> Result<File> {
    Ok(File::options().create(true).append(true).open(path)?)
}

/// The line end comes first: a piece of a line that somebody left behind does not spoil this one.
fn write(mut file: &File, call: u64, what: What) -> Result<()> {
    let at = now();
    let line = Event { at, call, what }.line();
    Ok(file.write_all(format!("\n{line}").as_bytes())?)
}

fn is_locked(file: &File) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
