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

    /// The deadline of a write that is sent at `sent` and may be under way for `limit`: at least
    /// so late was it at the store, and the limit. `None` before the first reply.
    pub(crate) fn not_after(&self, sent: Instant, limit: Duration) -> Option<StoreTime> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let (time, at) = heard?;
        Some(time.after(sent.saturating_duration_since(at)).after(limit))
    }
}
