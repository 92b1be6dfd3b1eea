//! How a guarded call came to its result.

use std::cell::Cell;
use std::future::Future;

tokio::task_local! {
    static OBSERVED: Cell<Outcome>;
}

/// How a guarded call came to its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The body ran.
    Executed,
    /// A stored result was given.
    Replayed,
    /// A stored result was given after waiting for it.
    Waited,
    /// `recover` knew the result of an attempt that had died.
    Recovered,
    /// The body ran without a guard.
    Unguarded,
    /// The guard refused.
    Refused,
}

/// Awaits `call` and says how the guarded call in it came to its result: the outermost one if
/// there are several, [`Outcome::Unguarded`] if there is none.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), idem_core::Error> {
/// use idem_core::{Idempotency, Key, Outcome, Policy, observe};
///
/// let idem = Idempotency::memory();
/// let pay = || idem.run(Key::new("order:pay", "A-1").unwrap(), Policy::new(), async || {
///     Ok::<_, idem_core::Error>("paid".to_string())
/// });
/// assert_eq!(observe(pay()).await.1, Outcome::Executed);
/// let (result, outcome) = observe(pay()).await;
/// assert_eq!(result?, "paid");
/// assert_eq!(outcome, Outcome::Replayed);
/// # Ok(()) }
/// ```
// Not an `async fn`, which would hold `call` once more.
pub fn observe<F: Future>(call: F) -> impl Future<Output = (F::Output, Outcome)> {
    OBSERVED.scope(Cell::new(Outcome::Unguarded), async move {
        let output = call.await;
        (output, OBSERVED.with(Cell::get))
    })
}

/// Reports to whoever observes. A call inside a body reports before the call around it, and is
/// overwritten by that.
pub(crate) fn report(outcome: Outcome) {
    let _ = OBSERVED.try_with(|observed| observed.set(outcome));
}
