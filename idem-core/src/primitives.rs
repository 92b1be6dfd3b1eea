//! What waiting is built on: the alarms, the heartbeats' appointments, the signals and the boards of
//! those who wait use these and nothing else of the kind, so that `tests/interleavings` can build the
//! same files on a scheduler that tries their interleavings.

pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::time::Instant;

pub(crate) use tokio::sync::{Notify, watch};

/// Waits for `signal`, at most until `moment`.
pub(crate) async fn no_later_than(moment: Instant, signal: impl Future<Output = ()>) {
    drop(tokio::time::timeout_at(moment.into(), signal).await);
}
