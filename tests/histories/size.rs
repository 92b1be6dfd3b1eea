//! How much there is of a campaign.

use std::ops::Range;
use std::time::Duration;

use idem_tests::long::is_long;

#[derive(Debug, Clone)]
pub(crate) struct Size {
    pub(crate) operations: u64,
    pub(crate) faults: usize,
    pub(crate) workers: usize,
    /// Of each worker.
    pub(crate) clients: usize,
    /// The longest rest of a client between two calls.
    pub(crate) rest: Duration,
    /// Milliseconds between two faults.
    pub(crate) pause: Range<u64>,
    /// How many keys are called most.
    pub(crate) hot: u64,
    /// How many operations it takes until the next key is new.
    pub(crate) per_key: u64,
}

/// Ten minutes, and so much for each operation: far more than it takes where the faults leave any
/// time for them.
const AT_LEAST: Duration = Duration::from_mins(10);
const PER_OPERATION: Duration = Duration::from_millis(50);

/// Few enough for callers of one key to meet.
const HOT: u64 = 8;
const PER_KEY: u64 = 20;

/// All campaigns together, where there is time.
const LONG: u64 = 600_000;

impl Size {
    /// When it is long clear that operations or faults do not come.
    pub(crate) fn too_long(&self) -> Duration {
        let operations = u32::try_from(self.operations).unwrap_or(u32::MAX);
        AT_LEAST + PER_OPERATION * operations
    }

    /// A part of all, in percent: where there is time, of the long run, or of as many operations
    /// as `IDEM_OPERATIONS` says.
    pub(crate) fn part(percent: u64) -> Self {
        let all = number("IDEM_OPERATIONS");
        if let Some(all) = all.or(is_long().then_some(LONG)) {
            let operations = all * percent / 100;
            return Self {
                operations,
                // So that there are 1,300 to a long run.
                faults: usize::try_from(operations / 450)
                    .unwrap_or(usize::MAX)
                    .max(13),
                workers: 4,
                clients: 8,
                rest: Duration::from_millis(30),
                pause: 200..1_000,
                hot: HOT,
                per_key: PER_KEY,
            };
        }
        Self {
            operations: 600,
            faults: 14,
            workers: 4,
            clients: 4,
            rest: Duration::from_millis(30),
            pause: 50..300,
            hot: HOT,
            per_key: PER_KEY,
        }
    }

    /// Everybody calls the same key, then the next one: 500 clients in a long run.
    pub(crate) fn crowded(self) -> Self {
        let clients = if is_long() { 125 } else { 16 };
        let everybody = u64::try_from(self.workers * clients).unwrap_or(u64::MAX);
        Self {
            clients,
            rest: 2 * self.rest,
            hot: 1,
            per_key: everybody,
            ..self
        }
    }
}

/// The seed of a run: that of `IDEM_SEED`, or any.
pub(crate) fn seed() -> u64 {
    number("IDEM_SEED").unwrap_or_else(|| fastrand::u64(..1 << 32))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap())
}
