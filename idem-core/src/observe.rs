//! How a guarded call came to its result.

use std::cell::Cell;
use std::future::Future;

tokio::task_local! {
    static OBSERVED: Cell<Report>;
}

/// What a guarded call says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    outcome: Outcome,
    /// Whether what was given is a stored error.
    is_stored_error: bool,
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
/// there are several, [`Outcome::Unguarded`] if there is none. One that `call` makes in a task of its
/// own is not seen: observe it there.
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
    told(call, |report| report.outcome)
}

/// The same, for who asks what an error of `call` is: stored only if the guarded call gave it as that.
/// What fails after the call of a stored success has failed now.
pub(crate) fn observe_error<F: Future>(call: F) -> impl Future<Output = (F::Output, Outcome)> {
    told(call, |report| match report.outcome {
        Outcome::Replayed | Outcome::Waited if !report.is_stored_error => Outcome::Executed,
        outcome => outcome,
    })
}

/// The same, with all that is said.
pub(crate) fn watch<F: Future>(call: F) -> impl Future<Output = (F::Output, Report)> {
    told(call, |report| report)
}

fn told<F: Future, R>(
    call: F,
    what: impl FnOnce(Report) -> R,
) -> impl Future<Output = (F::Output, R)> {
    let unguarded = Report {
        outcome: Outcome::Unguarded,
        is_stored_error: false,
    };
    OBSERVED.scope(Cell::new(unguarded), async move {
        let output = call.await;
        (output, what(OBSERVED.with(Cell::get)))
    })
}

/// Reports to whoever observes. A call inside a body reports before the call around it, and is
/// overwritten by that.
pub(crate) fn report(outcome: Outcome) {
    say(Report {
        outcome,
        is_stored_error: false,
    });
}

/// The same, of a stored error.
pub(crate) fn report_stored_error(outcome: Outcome) {
    say(Report {
        outcome,
        is_stored_error: true,
    });
}

/// Hands on what was [watched](watch).
pub(crate) fn say(report: Report) {
    let _ = OBSERVED.try_with(|observed| observed.set(report));
}
