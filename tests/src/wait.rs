//! Waiting for something to become true, with a deadline.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

const PAUSE: Duration = Duration::from_millis(10);

/// Asks `ready` every 10 ms until it answers Ok and gives its value.
///
/// # Errors
/// When `limit` has passed: the last answer, under a line that says what was waited for.
pub fn until<T>(what: &str, limit: Duration, mut ready: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        match ready() {
            Ok(value) => return Ok(value),
            Err(reason) if Instant::now() >= deadline => {
                return Err(reason.context(format!("{what}: not within {limit:?}")));
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Ok when `holds`, an error that shows `seen` otherwise: the usual last line of a condition.
pub fn need(holds: bool, seen: impl std::fmt::Debug) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(anyhow!("seen so far: {seen:?}"))
    }
}
