//! A process is killed at each point of a guarded call, and the next one asks with the same key.
//!
//! A kill is a process that ended by SIGKILL. `IDEM_LONG=1` kills more often.

mod consumer;
mod host;
mod lease;
mod locks;
mod mortal;
mod table;
mod transaction;

use idem_tests::long::is_long;

/// How often a process is killed at one point.
fn kills(ordinarily: usize, long: usize) -> usize {
    if is_long() { long } else { ordinarily }
}

/// Blocks without keeping its runtime from what else it does.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}
