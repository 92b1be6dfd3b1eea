//! What the handle and the connections of a proxy share.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Mode, Then};

#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    pub(super) connections: u64,
    pub(super) bytes: u64,
    pub(super) by_name: HashMap<String, u64>,
}

#[derive(Debug)]
struct Armed {
    /// Upper case; None is any command.
    name: Option<String>,
    then: Then,
}

/// The mode, and how often it was [`Mode::Cut`]: a cut that is over before a connection looks has
/// closed it all the same.
#[derive(Clone, Copy, Debug)]
struct Position {
    mode: Mode,
    cuts: u64,
}

#[derive(Debug)]
pub(super) struct Switch {
    position: watch::Sender<Position>,
    armed: Mutex<Option<Armed>>,
    passed: Mutex<Passed>,
}

impl Switch {
    pub(super) fn new() -> Self {
        Self {
            position: watch::Sender::new(Position {
                mode: Mode::Pass,
                cuts: 0,
            }),
            armed: Mutex::default(),
            passed: Mutex::default(),
        }
    }

    pub(super) fn set(&self, mode: Mode) {
        self.position.send_modify(|position| {
            position.mode = mode;
            position.cuts += u64::from(mode == Mode::Cut);
        });
    }

    pub(super) fn mode(&self) -> Mode {
        self.position.borrow().mode
    }

    pub(super) fn cuts(&self) -> u64 {
        self.position.borrow().cuts
    }

    /// Waits for a cut after the first `seen`.
    pub(super) async fn cut_after(&self, seen: u64) {
        let mut changes = self.position.subscribe();
        // The sender lives as long as `self`: the wait cannot fail.
        let _ = changes.wait_for(|position| position.cuts > seen).await;
    }

    /// Waits until `holds` of the mode, and gives it.
    pub(super) async fn mode_that(&self, mut holds: impl FnMut(Mode) -> bool) -> Mode {
        let mut changes = self.position.subscribe();
        // The sender lives as long as `self`: the wait cannot fail.
        let found = changes.wait_for(|position| holds(position.mode)).await;
        found.map_or(Mode::Cut, |position| position.mode)
    }

    pub(super) fn arm(&self, name: Option<&str>, then: Then) {
        *lock(&self.armed) = Some(Armed {
            name: name.map(str::to_uppercase),
            then,
        });
    }

    pub(super) fn is_armed(&self) -> bool {
        lock(&self.armed).is_some()
    }

    /// Disarms and tells what to do, if the command is the one waited for.
    pub(super) fn fires_for(&self, command: &str) -> Option<Then> {
        let mut armed = lock(&self.armed);
        let hit = armed
            .as_ref()?
            .name
            .as_deref()
            .is_none_or(|name| name == command);
        if hit {
            armed.take().map(|armed| armed.then)
        } else {
            None
        }
    }

    pub(super) fn passed(&self) -> Passed {
        lock(&self.passed).clone()
    }

    pub(super) fn count_connection(&self) {
        lock(&self.passed).connections += 1;
    }

    pub(super) fn count_bytes(&self, bytes: usize) {
        lock(&self.passed).bytes += bytes as u64;
    }

    pub(super) fn count_command(&self, name: &str) {
        *lock(&self.passed)
            .by_name
            .entry(name.to_owned())
            .or_default() += 1;
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
