//! Messages: what becomes of a delivery after a guarded call, for any broker.
//!
//! A broker delivers at least once, so the handler of a message is a guarded function. This module
//! says what to do with the message when the call has come back, as plain data, an [`Action`]; a
//! few lines of glue do it with the broker at hand. It knows no broker itself.
//!
//! | the call | the message |
//! |---|---|
//! | success, replay, `Duplicate`, `ResultUnavailable` | [`Action::Ack`] |
//! | `InProgress` | [`Action::Delay`] by what is left of the lease; not counted |
//! | `Store`, `LeaseLost`, a service that is set up wrongly, and what you call [away](Meaning::Away) | [`Action::Pause`]; not counted |
//! | `Store` of the kind [`Conflict`](crate::StoreErrorKind::Conflict) | [`Action::Delay`] of this message alone; not counted |
//! | `Store` of the kind [`Protocol`](crate::StoreErrorKind::Protocol), which this message may be alone to meet | [`Action::Delay`] with back-off, by a pause or longer, counted and bounded |
//! | `OutcomeUnknown` | [`Action::Park`], counted in [`Counts::parked`] and said as an error |
//! | the same of a function with a `recover`, which could not tell or has failed | [`Action::Delay`] with back-off, counted and bounded, then [`Action::Park`] |
//! | a stored error that was replayed, also one that can not be read any more | [`Action::Dead`] by [`Reason::StoredError`] |
//! | an error of the body, or a panic | by your [`Meaning`]: [`Action::Delay`] with back-off, counted and bounded, or [`Action::Dead`] |
//! | `Mismatch`, `MissingKey`, `InvalidKey`, `Damaged`, `TokenRejected`, `Refused`; unreadable; without an id | [`Action::Dead`] with a [`Reason`] |
//!
//! Nothing is dead-lettered that was only waiting, and acknowledging a duplicate never
//! acknowledges the first: while that runs its duplicates are delayed, and if it fails one of them
//! runs.
//!
//! An answer of a store that nobody understands may be the message's own doing: its body has kept
//! the failure of a statement to itself, after which PostgreSQL takes no record in that transaction,
//! or has returned what the database never takes. At its last retry such a message is dead by
//! [`Reason::Store`].
//!
//! # Two words about one error
//! Your [`Meaning`] decides about the message, `on_error` about the record, and they have to agree.
//! Without `on_error` each error says that nothing happened: a time-out that is a [`Meaning::Retry`] runs
//! the body again at each delivery, 11 times with the default [`Rules`], and nobody is asked. Where
//! an error leaves open what has happened, let `on_error` answer
//! [`Abandon`](crate::OnError::Abandon): the next delivery is parked, or `recover` decides.
//!
//! # What the glue promises
//! - A message that is delayed, parked or dead-lettered is **published as a copy**, and the original
//!   is acknowledged only after the broker has confirmed the copy. A crash between the two leaves
//!   two messages, and the second one is a duplicate like any other.
//! - Copies keep the id, the headers and the payload. The counted retries travel in the header
//!   [`RETRIES_HEADER`], the reason of a dead letter in [`REASON_HEADER`]. A time to live that the
//!   publisher gave does not go along: nothing vanishes from the parked or the dead. Neither do
//!   headers by which the broker hands a message to others too, such as `CC` of RabbitMQ: they have
//!   had it.
//! - Nothing is rejected without requeue: without a dead-letter exchange that deletes it, with one
//!   it loses the reason.
//! - While [paused](Action::Pause) the delivery is held, unacknowledged, and no other is begun.
//! - What was parked is published to its queue again after somebody has
//!   [resolved](crate::Idempotency::resolve) its key, without either header: its retries count anew.
//!   Doing it too early does no harm: it is parked again. Unless it was parked by a function with `tx`,
//!   whose body had ended the transaction: there is no record of that, and its body runs again. Take
//!   such a message out where the effect is there.
//! - A connection that is lost does not stop the bodies that run. They finish; the broker delivers
//!   again, and that is a duplicate.
//!
//! # Examples
//! ```
//! use idem_core::consumer::{Action, Consumer, Meaning, MessageId, Reason};
//! use idem_core::{Idempotency, OnError, idempotent};
//!
//! #[derive(Debug)]
//! enum ShipError {
//!     Unreadable,
//!     NoSuchAddress,
//!     CarrierAway,
//!     CarrierTimedOut,
//!     Idempotency(idem_core::Error),
//! }
//! # impl From<idem_core::Error> for ShipError {
//! #     fn from(error: idem_core::Error) -> Self { Self::Idempotency(error) }
//! # }
//!
//! // About the record: only of these two it is known that nothing was sent.
//! fn certainty(error: &ShipError) -> OnError {
//!     match error {
//!         ShipError::NoSuchAddress | ShipError::CarrierAway => OnError::Fail,
//!         _ => OnError::Abandon,
//!     }
//! }
//!
//! #[idempotent(prefix = "order:ship", key = "id", expire = "7d", on_error = certainty)]
//! async fn ship(id: MessageId, address: &str) -> Result<(), ShipError> {
//!     match address {
//!         "" => Err(ShipError::NoSuchAddress),
//!         _ => Ok(()),
//!     }
//! }
//!
//! // About the message.
//! fn meaning(error: &ShipError) -> Meaning<'_> {
//!     match error {
//!         ShipError::Idempotency(refusal) => Meaning::Refusal(refusal),
//!         ShipError::CarrierAway | ShipError::CarrierTimedOut => Meaning::Retry,
//!         ShipError::NoSuchAddress => Meaning::Dead,
//!         ShipError::Unreadable => Meaning::Unreadable,
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), idem_core::Error> {
//! Idempotency::memory().install()?;
//! let consumer = Consumer::new(meaning);
//! let handle = async |id, payload: &[u8]| {
//!     let call = |id| async {
//!         let address = std::str::from_utf8(payload).map_err(|_| ShipError::Unreadable)?;
//!         ship(id, address).await
//!     };
//!     consumer.handle(id, 0, call).await
//! };
//! assert_eq!(handle(Some("m-1"), b"Elm Street 1").await, Action::Ack);
//! assert_eq!(handle(Some("m-1"), b"Elm Street 1").await, Action::Ack); // not shipped again
//! let dead = |reason| Action::Dead { reason };
//! assert_eq!(handle(Some("m-2"), b"\xff").await, dead(Reason::Unreadable));
//! assert_eq!(handle(Some("m-3"), b"").await, dead(Reason::Rejected));
//! assert_eq!(handle(None, b"Elm Street 1").await, dead(Reason::MissingId));
//! # Ok(())
//! # }
//! ```
//! With `anyhow` the refusal is found by its type:
//! ```
//! use idem_core::consumer::{Consumer, Meaning};
//!
//! let consumer = Consumer::new(|error: &anyhow::Error| match error.downcast_ref() {
//!     Some(refusal) => Meaning::Refusal(refusal),
//!     None => Meaning::Retry,
//! });
//! # let _ = consumer;
//! ```

mod action;
mod counts;
mod message_id;
mod verdict;

pub use action::{Action, REASON_HEADER, RETRIES_HEADER, Reason};
pub use counts::Counts;
pub use message_id::MessageId;
pub use verdict::{Answer, Meaning, Rules};

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use self::counts::Counters;
use crate::error::Error;
use crate::observe::{Outcome, observe_error};

/// What becomes of the deliveries of one queue. Shared by all that work on them.
pub struct Consumer<E> {
    meaning: fn(&E) -> Meaning<'_>,
    rules: Rules,
    paused_until: Mutex<Option<Instant>>,
    counters: Counters,
}

impl<E> fmt::Debug for Consumer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("rules", &self.rules)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl<E> Consumer<E> {
    /// A consumer whose handlers' errors mean what `meaning` says, with the default [`Rules`].
    #[must_use]
    pub fn new(meaning: fn(&E) -> Meaning<'_>) -> Self {
        Self {
            meaning,
            rules: Rules::new(),
            paused_until: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// With other bounds and times.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// What happened since this was made.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Waits while a pause lasts. Ask before every [`handle`](Self::handle).
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn ready(&self) {
        while let Some(until) = self.pause() {
            sleep_until(until).await;
        }
    }

    /// Makes one call for one delivery, and says what to do with it.
    ///
    /// `id` is the message's own id, the same in every delivery of one event; `retries` is what the
    /// message says about itself, 0 without the header. `call` makes **one** guarded call,
    /// not in a task that it spawns, and gives its error on. What an error of the handler says is for
    /// `call` to log: nobody sees it afterwards.
    ///
    /// # Panics
    /// Never for `call`, nor for the meaning of its error: their panic counts as an error that may
    /// pass.
    ///
    /// # Cancel safety
    /// That of the call. Whoever drops this does nothing with the message: the broker delivers it
    /// again.
    ///
    /// # Concurrent calls on the same key
    /// One runs, the messages of the others are delayed.
    pub async fn handle<T, F>(
        &self,
        id: Option<&str>,
        retries: u32,
        call: impl FnOnce(MessageId) -> F,
    ) -> Action
    where
        F: Future<Output = Result<T, E>>,
    {
        let Some(id) = id.and_then(|id| MessageId::new(id).ok()) else {
            return self.act(Answer::MissingId, retries);
        };
        match unless_it_panics(observe_error(async { call(id).await })).await {
            Some((result, outcome)) => self.verdict(&result, outcome, retries),
            None => self.act(Answer::Panicked, retries),
        }
    }

    /// What to do with the message of a call that was [observed](crate::observe()): for those who make
    /// the call themselves. An error that was replayed is taken for the stored one. A meaning that panics
    /// is that of a handler which did.
    pub fn verdict<T>(&self, result: &Result<T, E>, outcome: Outcome, retries: u32) -> Action {
        let answer = match result {
            Ok(_) => Answer::Done,
            Err(error) => match catch_unwind(AssertUnwindSafe(|| (self.meaning)(error))) {
                Ok(meaning) => Answer::Failed { meaning, outcome },
                Err(_) => Answer::Panicked,
            },
        };
        self.act(answer, retries)
    }

    fn act(&self, answer: Answer<'_>, retries: u32) -> Action {
        let action = self.rules.verdict(answer, retries);
        if let Action::Pause { by } = action {
            *self.paused() = Some(after(by));
        }
        self.counters.count(action);
        say(action, answer);
        action
    }

    fn pause(&self) -> Option<Instant> {
        self.paused().filter(|until| *until > Instant::now())
    }

    fn paused(&self) -> MutexGuard<'_, Option<Instant>> {
        self.paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pause that is longer than the clock can count is as good as a year.
fn after(pause: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(24 * 365);
    let now = Instant::now();
    now.checked_add(pause).unwrap_or_else(|| now + YEAR)
}

/// Tells the operator, without ids: those are keys.
fn say(action: Action, answer: Answer<'_>) {
    let is_stores = matches!(answer.refusal(), Some(Error::Store { .. }));
    let refusal = answer.refusal().map(tracing::field::display);
    match action {
        Action::Ack => {}
        Action::Delay { by, retries } if is_stores => {
            tracing::warn!(refusal, ?by, retries, "a message is delayed by its store");
        }
        Action::Delay { by, retries } => {
            tracing::debug!(refusal, ?by, retries, "a message is delayed");
        }
        Action::Pause { by } => {
            tracing::warn!(refusal, ?by, "messages are held back");
        }
        Action::Park => {
            tracing::error!(
                refusal,
                "a message is parked: look its outcome up, resolve its key, and let it go on"
            );
        }
        Action::Dead { reason } => {
            tracing::error!(refusal, %reason, "a message is dead-lettered");
        }
    }
}

/// `None` if `call` panicked. What a panic may have left half done is the body's own; nothing of
/// this crate is shared with it.
async fn unless_it_panics<F: Future>(call: F) -> Option<F::Output> {
    let mut call = Box::pin(call);
    poll_fn(
        move |context| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        },
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_no_clock_can_count_is_a_pause() {
        assert!(after(Duration::MAX) > after(Duration::from_hours(24)));
    }
}
