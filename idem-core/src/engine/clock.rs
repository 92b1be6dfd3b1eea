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
        let (time, since) = self.heard(sent)?;
        Some(time.after(since).after(limit))
    }

    /// The same, and `None` too if nothing was heard for so long that the two clocks may have
    /// drifted apart: a claim whose deadline is too late can arrive after its attempt has ended.
    pub(crate) fn not_after_for_sure(&self, sent: Instant, limit: Duration) -> Option<StoreTime> {
        // A clock that is being corrected runs 0.5 ms a second too fast or too slow: 0.3 s.
        const LONGEST_SILENCE: Duration = Duration::from_mins(10);
        let (time, since) = self.heard(sent)?;
        (since < LONGEST_SILENCE).then(|| time.after(since).after(limit))
    }

    /// The last store time heard, and how long before `sent` that was.
    fn heard(&self, sent: Instant) -> Option<(StoreTime, Duration)> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map(|(time, at)| (time, sent.saturating_duration_since(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_long_silence_the_store_is_asked_again() {
        const LIMIT: Duration = Duration::from_secs(2);
        let clock = StoreClock::default();
        let heard = StoreTime::from_micros(1_000_000);
        clock.hear(heard);
        let later = |time| Instant::now() + time;
        let soon = clock.not_after_for_sure(later(Duration::from_mins(9)), LIMIT);
        assert!(soon.is_some_and(|deadline| deadline > heard.after(LIMIT)));
        let late = later(Duration::from_mins(11));
        assert_eq!(clock.not_after_for_sure(late, LIMIT), None);
        assert!(clock.not_after(late, LIMIT).is_some());
    }
}
