//! The clocks a memory store can run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::record::StoreTime;

/// Where a memory store reads its time.
///
/// It is asked under a lock, once for each operation: it should answer at once.
pub trait Clock: Send + Sync + 'static {
    /// The time now. It should never go back.
    fn now(&self) -> StoreTime;
}

/// The machine's time, which nobody can set back: the wall clock as it was when this was made, and
/// the monotonic time since.
#[derive(Debug, Clone)]
pub struct SystemClock {
    wall: StoreTime,
    since: Instant,
}

impl SystemClock {
    /// A clock that agrees with the wall clock now.
    #[must_use]
    pub fn new() -> Self {
        // A machine whose clock stands before 1970 begins at the epoch.
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            wall: StoreTime::default().after(wall),
            since: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> StoreTime {
        self.wall.after(self.since.elapsed())
    }
}

/// A clock that stands still until a test moves it. Clones show the same time.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use idem_core::store::memory::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.clone().advance(Duration::from_secs(30));
/// assert_eq!(clock.now().since(before), Duration::from_secs(30));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    micros: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at the beginning of 2020.
    #[must_use]
    pub fn new() -> Self {
        Self::at(StoreTime::from_micros(1_577_836_800_000_000))
    }

    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: StoreTime) -> Self {
        Self {
            micros: Arc::new(AtomicU64::new(now.as_micros())),
        }
    }

    /// Lets `time` pass, in whole microseconds.
    pub fn advance(&self, time: Duration) {
        let later = |micros| Some(StoreTime::from_micros(micros).after(time).as_micros());
        // `later` always gives a value, so this can not fail.
        let _ = self
            .micros
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// Sets the clock, also back.
    pub fn set(&self, now: StoreTime) {
        self.micros.store(now.as_micros(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> StoreTime {
        StoreTime::from_micros(self.micros.load(Ordering::SeqCst))
    }
}
