//! `idem_core`'s primitives, in the hands of the scheduler.
//!
//! tokio's notifications and channels are taken as they are, each operation as one step: that they
//! keep their word is tokio's to check.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};

use shuttle::sync::atomic::{AtomicU64, Ordering};

pub(crate) use shuttle::sync::{Mutex, MutexGuard};
pub(crate) use tokio::sync::watch;

std::thread_local! {
    // All of a run is on one thread of the system.
    static NOW: Cell<u64> = const { Cell::new(0) };
    static SLEEPING: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

/// A moment of the run's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(pub(crate) u64);

impl Instant {
    pub(crate) fn now() -> Self {
        step();
        Self(NOW.get())
    }

    /// Begins a run.
    pub(crate) fn begin() {
        NOW.set(0);
        SLEEPING.take();
    }

    /// Lets time pass until this moment.
    pub(crate) fn come(self) {
        step();
        NOW.set(self.0);
        let sleeping = SLEEPING.take();
        sleeping.into_iter().for_each(Waker::wake);
    }
}

/// A notification before whose operations another thread may go on.
#[derive(Debug, Default)]
pub(crate) struct Notify(tokio::sync::Notify);

impl Notify {
    pub(crate) fn notified(&self) -> tokio::sync::futures::Notified<'_> {
        step();
        self.0.notified()
    }

    pub(crate) fn notify_one(&self) {
        step();
        self.0.notify_one();
    }

    pub(crate) fn notify_waiters(&self) {
        step();
        self.0.notify_waiters();
    }
}

pub(crate) async fn no_later_than(moment: Instant, signal: impl Future<Output = ()>) {
    let mut signal = pin!(signal);
    poll_fn(|context| {
        if signal.as_mut().poll(context).is_ready() || NOW.get() >= moment.0 {
            return Poll::Ready(());
        }
        SLEEPING.with_borrow_mut(|sleeping| sleeping.push(context.waker().clone()));
        Poll::Pending
    })
    .await;
}

/// A place where another thread may go on.
pub(crate) fn step() {
    AtomicU64::new(0).load(Ordering::SeqCst);
}
