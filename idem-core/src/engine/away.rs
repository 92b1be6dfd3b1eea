//! What an operator is told while a store is away: not a line for each call, of which there may be
//! thousands a second, but one now and then that says how many were refused.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::StoreError;

/// Between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Calls that were refused without an answer of the store.
#[derive(Debug, Default)]
pub(crate) struct Away(Mutex<Untold>);

#[derive(Debug, Default)]
struct Untold {
    refused: u64,
    told: Option<Instant>,
}

impl Away {
    /// One more.
    pub(crate) fn refused(&self, error: &StoreError) {
        if let Some(refused) = self.untold(Instant::now()) {
            tracing::warn!(%error, refused, "calls are refused: the store granted nothing");
        }
    }

    /// How many there are to tell of, if it is time.
    fn untold(&self, now: Instant) -> Option<u64> {
        let mut untold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        untold.refused += 1;
        let is_early = |told| now.saturating_duration_since(told) < PAUSE;
        if untold.told.is_some_and(is_early) {
            return None;
        }
        untold.told = Some(now);
        Some(std::mem::take(&mut untold.refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_at_once_and_the_others_together() {
        let away = Away::default();
        let begin = Instant::now();
        assert_eq!(away.untold(begin), Some(1));
        for second in 1..10 {
            assert_eq!(away.untold(begin + Duration::from_secs(second)), None);
        }
        assert_eq!(away.untold(begin + PAUSE), Some(10));
        assert_eq!(away.untold(begin + PAUSE), None);
        assert_eq!(away.untold(begin + 5 * PAUSE), Some(2));
    }
}
