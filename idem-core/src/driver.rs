//! The one background thread of the process.
//!
//! Work that must outlive a call runs here: heartbeats, settles that go on, give-ups and abandons
//! of dropped calls, subscriptions. So dropping a call never needs a runtime of the caller's, a
//! body that blocks its thread does not starve its own renewal, and a runtime that ends (each test
//! has its own) takes nothing of the engine with it.

mod alarms;

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

use once_cell::sync::OnceCell;
use tokio::runtime::{Builder, Handle};

use self::alarms::Alarms;
use crate::error::{StoreError, StoreErrorKind};

static DRIVER: OnceCell<Driver> = OnceCell::new();

struct Driver {
    runtime: Handle,
    alarms: Alarms,
}

/// Runs `job` on the background thread.
pub(crate) fn spawn(job: impl Future<Output = ()> + Send + 'static) {
    match driver() {
        Ok(driver) => drop(driver.runtime.spawn(job)),
        // A process that can not have one more thread can not be helped by a job for it; leases
        // lapse by themselves.
        Err(error) => tracing::error!(%error, "idempotency work was dropped"),
    }
}

/// `future`, or `None` if it is not ready by `deadline`.
///
/// On the system's monotonic clock and on no runtime's timer, so that it also holds where that is
/// paused, absent, or starved by a blocking body.
pub(crate) async fn by<F: Future>(
    deadline: Instant,
    future: F,
) -> Result<Option<F::Output>, StoreError> {
    Ok(driver()?.alarms.by(deadline, future).await)
}

/// Waits until `moment`.
pub(crate) async fn sleep_until(moment: Instant) -> Result<(), StoreError> {
    by(moment, std::future::pending::<()>()).await.map(|_| ())
}

/// The moment `time` from now; far beyond any process if there is no such moment.
pub(crate) fn moment_in(time: Duration) -> Instant {
    const FAR: Duration = Duration::from_hours(100 * 365 * 24);
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now + FAR)
}

/// Waits for `pause`.
pub(crate) async fn sleep(pause: Duration) -> Result<(), StoreError> {
    sleep_until(Instant::now() + pause).await
}

fn driver() -> Result<&'static Driver, StoreError> {
    DRIVER.get_or_try_init(start).map_err(|error| {
        StoreError::new(
            StoreErrorKind::Unavailable,
            "the background thread can not be started",
        )
        .with_source(error)
    })
}

fn start() -> std::io::Result<Driver> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("idem".into())
        .spawn(move || runtime.block_on(async { DRIVER.wait().alarms.ring().await }))?;
    Ok(Driver {
        runtime: handle,
        alarms: Alarms::default(),
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Poll, Waker};

    use super::*;

    #[test]
    fn a_deadline_needs_no_runtime_of_the_caller() {
        let begin = Instant::now();
        let deadline = begin + Duration::from_millis(20);
        let waited = block_on_without_a_runtime(by(deadline, std::future::pending::<()>()));
        assert!(waited.unwrap().is_none());
        assert!(begin.elapsed() >= Duration::from_millis(20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_test_clock_does_not_stop_it() {
        sleep(Duration::from_millis(5)).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_ready_is_given_at_once_and_leaves_no_alarm() {
        let far = Instant::now() + Duration::from_hours(1);
        assert_eq!(by(far, async { 7 }).await.unwrap(), Some(7));
        let slow = by(far, tokio::task::yield_now()).await.unwrap();
        assert!(slow.is_some());
        assert!(!driver().unwrap().alarms.has_any_at(far));
    }

    /// As that of an executor which has ended and says so by a panic.
    #[test]
    fn a_waker_that_panics_does_not_end_the_thread() {
        struct Panics;
        impl std::task::Wake for Panics {
            fn wake(self: std::sync::Arc<Self>) {
                panic!("of the waker");
            }
        }
        let (sender, done) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let moment = Instant::now() + Duration::from_millis(20);
            let mut woken = Box::pin(sleep_until(moment));
            let waker = Waker::from(std::sync::Arc::new(Panics));
            let mut context = std::task::Context::from_waker(&waker);
            assert!(woken.as_mut().poll(&mut context).is_pending());
            // Due at the same moment, and at a later one.
            for moment in [moment, moment + Duration::from_millis(20)] {
                block_on_without_a_runtime(sleep_until(moment)).unwrap();
            }
            sender.send(()).unwrap();
        });
        done.recv_timeout(Duration::from_secs(10))
            .expect("nobody is woken any more");
    }

    /// In executors whose wakers own their tasks, dropping a waker can drop a waiting call.
    #[test]
    fn a_waker_that_owns_another_waiting_task_can_be_dropped() {
        struct Task(#[expect(dead_code, reason = "only its drop matters")] Owned);
        type Owned = Mutex<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>;
        impl std::task::Wake for Task {
            fn wake(self: std::sync::Arc<Self>) {}
        }
        let waits = || Box::pin(async { drop(sleep(Duration::from_hours(2)).await) });
        let waker_of = |task| Waker::from(std::sync::Arc::new(Task(Mutex::new(task))));
        let poll = |future: std::pin::Pin<&mut (dyn Future<Output = ()> + Send)>, waker: &Waker| {
            assert!(
                future
                    .poll(&mut std::task::Context::from_waker(waker))
                    .is_pending()
            );
        };
        let (sender, done) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let mut inner = waits();
            poll(inner.as_mut(), Waker::noop());
            let mut outer = waits();
            poll(outer.as_mut(), &waker_of(inner));
            poll(outer.as_mut(), Waker::noop());
            let mut inner = waits();
            poll(inner.as_mut(), Waker::noop());
            poll(outer.as_mut(), &waker_of(inner));
            drop(outer);
            sender.send(()).unwrap();
        });
        done.recv_timeout(Duration::from_secs(10))
            .expect("it hangs");
    }

    fn block_on_without_a_runtime<F: Future>(future: F) -> F::Output {
        struct Unpark(thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
        let mut future = pin!(future);
        loop {
            let mut context = std::task::Context::from_waker(&waker);
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            thread::park();
        }
    }
}
