//! Waiting until something is so.

use crate::primitives::Notify;

/// Wakes those who wait until something is so. What they ask has to be true before it is said.
#[derive(Debug, Default)]
pub(crate) struct Signal(Notify);

impl Signal {
    /// Returns when `is_so`: at once, or after some [`say`](Self::say).
    pub(crate) async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            // Before the question, so that nothing is missed that is said after it.
            let said = self.0.notified();
            if is_so() {
                return;
            }
            said.await;
        }
    }

    /// Lets everybody who waits ask again.
    pub(crate) fn say(&self) {
        self.0.notify_waiters();
    }
}
