//! What a consumer has done, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Action;

/// How many deliveries came to each [`Action`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Done, now or before.
    pub acked: u64,
    /// To come back later, counted retries included.
    pub delayed: u64,
    /// Held back: the store or something else was away, or a lease was lost.
    pub paused: u64,
    /// Outcome unknown: somebody has to look. Also an event at the level of errors.
    pub parked: u64,
    /// Dead-lettered. Also an event at the level of errors.
    pub dead: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    acked: AtomicU64,
    delayed: AtomicU64,
    paused: AtomicU64,
    parked: AtomicU64,
    dead: AtomicU64,
}

impl Counters {
    pub(super) fn count(&self, action: Action) {
        let counter = match action {
            Action::Ack => &self.acked,
            Action::Delay { .. } => &self.delayed,
            Action::Pause { .. } => &self.paused,
            Action::Park => &self.parked,
            Action::Dead { .. } => &self.dead,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            acked: read(&self.acked),
            delayed: read(&self.delayed),
            paused: read(&self.paused),
            parked: read(&self.parked),
            dead: read(&self.dead),
        }
    }
}
