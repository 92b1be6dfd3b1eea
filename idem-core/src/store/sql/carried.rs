//! Work on a connection that goes on without the call it was begun for.
//!
//! A call has little time, and its caller may leave at any moment. But a connection that was left
//! in the middle of something can only be closed, and opening another one costs a server more than
//! most calls do. Clients in a greater hurry than their server would keep it busy with that alone:
//! none would ever have an answer, and the more there are the longer it takes. So what was begun on
//! a connection is carried to its end, in a task if need be, and the next call finds it ready.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::driver::{by, moment_in};

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Awaits `work`. If it is dropped before, `work` goes on in a task of the current runtime, for as
/// long as `patience`, and `unheard` puts in order what nobody hears of.
pub(super) fn carried<T, U, F>(
    patience: Duration,
    work: impl Future<Output = T> + Send + 'static,
    unheard: U,
) -> Carried<T, U, F>
where
    T: Send + 'static,
    U: FnOnce(T) -> F + Send + Unpin + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    Carried {
        rest: Some((Box::pin(work), unheard)),
        patience,
        runtime: Handle::current(),
    }
}

/// For work whose end leaves nothing to put in order.
pub(super) async fn nothing<T>(_: T) {}

pub(super) struct Carried<T, U, F>
where
    T: Send + 'static,
    U: FnOnce(T) -> F + Send + Unpin + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    rest: Option<(Work<T>, U)>,
    patience: Duration,
    runtime: Handle,
}

impl<T, U, F> Future for Carried<T, U, F>
where
    T: Send + 'static,
    U: FnOnce(T) -> F + Send + Unpin + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some((work, _)) = &mut self.rest else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.rest = None;
        }
        polled
    }
}

impl<T, U, F> Drop for Carried<T, U, F>
where
    T: Send + 'static,
    U: FnOnce(T) -> F + Send + Unpin + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    fn drop(&mut self) {
        let Some((work, unheard)) = self.rest.take() else {
            return;
        };
        // Where the runtime has ended, the task is dropped here, and sqlx starts another one for
        // what it held.
        let _within = self.runtime.enter();
        let until = moment_in(self.patience);
        self.runtime.spawn(async move {
            let carried = by(until, async { unheard(work.await).await });
            // Too late or not: nobody waits for it.
            drop(carried.await);
        });
    }
}
