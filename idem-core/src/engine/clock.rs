//! What the engine knows of the store's time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::record::StoreTime;

/// The last store time heard, and when. Never a wall clock of this machine.
#[derive(Debug, Default)]
pub(crate) struct StoreClock {
    heard: Mutex<Option<(StoreTime, Instant)>>,
}

impl StoreClock {
    /// Takes over the time that a reply carried.
    pub(crate) fn hear(&self, time: StoreTime) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        *heard = Some((time, Instant::now()));
    }

    /// At least this late is it at the store; `None` before the first reply.
    pub(crate) fn now(&self) -> Option<StoreTime> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map(|(time, at)| time.after(at.elapsed()))
    }

    /// The deadline of a write that is sent now and may be under way for `limit`.
    pub(crate) fn not_after(&self, limit: Duration) -> Option<StoreTime> {
        self.now().map(|now| now.after(limit))
    }
}
