//! Work that its caller can not cancel.

use std::future::{Future, pending};
use std::panic::resume_unwind;

/// Does `work` in a task of its own, and waits for it.
///
/// A transaction wants this. Dropped while `BEGIN` is on the wire, its `begin()` gives the connection
/// back to the pool with a transaction open on it that sqlx knows nothing of: what others write on it
/// later is answered, and never committed.
///
/// # Panics
/// As `work` does.
///
/// # Cancel safety
/// Dropped, the work goes on to its end.
pub async fn apart<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            // The runtime ends, and this call with it.
            Err(_) => pending().await,
        },
    }
}
