//! Bodies that tests hold, count and drop.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// How often a body has run. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Bodies(Arc<AtomicU32>);

impl Bodies {
    /// Counts one more, and gives its number, from 1.
    #[expect(clippy::must_use_candidate, reason = "most bodies only count")]
    pub fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A place in a body at which it stays until the test lets it go. Clones are the same place.
#[derive(Debug, Clone)]
pub struct Held {
    entered: Arc<Semaphore>,
    leave: Arc<Semaphore>,
}

impl Default for Held {
    fn default() -> Self {
        Self::new()
    }
}

impl Held {
    /// A place where nobody is.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entered: Arc::new(Semaphore::new(0)),
            leave: Arc::new(Semaphore::new(0)),
        }
    }

    /// In the body: says that it is here, and stays.
    pub async fn stay(&self) {
        self.entered.add_permits(1);
        take(&self.leave).await;
    }

    /// In the test: waits until a body is there.
    ///
    /// # Panics
    /// After ten seconds.
    pub async fn entered(&self) {
        let entered = tokio::time::timeout(Duration::from_secs(10), take(&self.entered)).await;
        assert!(entered.is_ok(), "no body came");
    }

    /// In the test: lets one body go on.
    pub fn release(&self) {
        self.leave.add_permits(1);
    }
}

async fn take(permits: &Semaphore) {
    // Nobody closes it.
    if let Ok(permit) = permits.acquire().await {
        permit.forget();
    }
}

/// Waits until `holds`; needs no runtime.
///
/// # Panics
/// After ten seconds.
pub async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    within(Duration::from_secs(10), what, holds).await;
}

/// The same, with another patience.
///
/// # Panics
/// When that is over.
pub async fn within(patience: Duration, what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < patience, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
}

/// Polls `future` as often as it wakes, at most `polls` times, then drops it. `None` if it was
/// dropped before it ended.
pub async fn dropped_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context: &mut Context<'_>| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
