//! Running a body that was admitted, and settling what became of it.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;

use super::core::{Core, Counters};
use super::guard::{AttemptGuard, UnguardedGuard};
use crate::attempt::Attempt;
use crate::codec::CodecError;
use crate::error::{Error, StoreError};
use crate::observe::{self, Outcome as Observed};
use crate::policy::{OnDuplicate, OnError, Settings};
use crate::record::{Current, Outcome, SettleReply};
use crate::results::Results;

/// What somebody found out about an attempt that died after its checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered<T> {
    /// It happened, with this result: settled without running the body.
    Done(T),
    /// It did not happen **and can not happen any more**: the body runs.
    NotDone,
    /// Nobody can say yet: the outcome stays unknown, and the next call asks again. An error of
    /// `recover` means the same. No text of it is kept anywhere: log inside `recover` what went wrong.
    Unknown,
}

/// How a body ended.
pub(crate) enum Ended<R> {
    Returned(R),
    Panicked(Box<dyn Any + Send>),
    /// The record was lost, and the body was dropped.
    Stopped,
    /// …before it began.
    NeverBegan,
}

/// A body that may run.
pub(crate) enum Admitted {
    Guarded(AttemptGuard),
    Unguarded(UnguardedGuard),
    /// Without a key there is nothing to guard.
    Keyless,
}

impl Admitted {
    pub(crate) async fn execute<T, E, F>(
        self,
        results: Results<T, E>,
        body: Pin<Box<F>>,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        match self {
            Self::Guarded(guard) => execute(guard, results, body).await,
            Self::Unguarded(guard) => {
                let result = Attempt::scope_of_none(body).await;
                observe::report(Observed::Unguarded);
                let outcome = outcome_of(&result, results, guard.core(), guard.settings());
                guard.settle(outcome);
                result
            }
            Self::Keyless => {
                let result = Attempt::scope_of_none(body).await;
                observe::report(Observed::Unguarded);
                result
            }
        }
    }
}

async fn execute<T, E, F>(
    mut guard: AttemptGuard,
    results: Results<T, E>,
    body: Pin<Box<F>>,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let attempt = guard.attempt().clone();
    match run(&mut guard, body).await {
        Ended::Returned(result) => {
            observe::report(Observed::Executed);
            let inner = attempt.inner();
            let outcome = outcome_of(&result, results, &inner.core, &inner.settings);
            let settled = guard.settle(outcome).await;
            match result {
                Ok(value) => after_success(&attempt, results, value, settled),
                Err(error) => {
                    say_unless_settled(&attempt, &settled);
                    Err(error)
                }
            }
        }
        Ended::Panicked(payload) => {
            say_unless_settled(&attempt, &guard.settle(Outcome::Abandon).await);
            resume_unwind(payload)
        }
        Ended::Stopped => {
            observe::report(Observed::Executed);
            Err(results.refuse(lease_lost(guard)))
        }
        Ended::NeverBegan => {
            observe::report(Observed::Refused);
            Err(results.refuse(lease_lost(guard)))
        }
    }
}

/// Asks `recover` what the attempt before has done: `Ok` gives the guard back for the body to run,
/// `Err` is the caller's answer.
pub(crate) async fn recover<T, E, RE, F>(
    mut guard: AttemptGuard,
    results: Results<T, E>,
    recover: Pin<Box<F>>,
) -> Result<AttemptGuard, Result<T, E>>
where
    F: Future<Output = Result<Recovered<T>, RE>>,
{
    let attempt = guard.attempt().clone();
    match run(&mut guard, recover).await {
        Ended::Returned(Ok(Recovered::NotDone)) => Ok(guard),
        Ended::Returned(Ok(Recovered::Done(value))) => {
            observe::report(Observed::Recovered);
            let inner = attempt.inner();
            let result = Ok(value);
            let outcome = outcome_of(&result, results, &inner.core, &inner.settings);
            let settled = guard.settle(outcome).await;
            Err(result.and_then(|value| after_success(&attempt, results, value, settled)))
        }
        Ended::Returned(answer @ (Ok(Recovered::Unknown) | Err(_))) => {
            observe::report(Observed::Refused);
            if answer.is_err() {
                tracing::warn!(
                    key = ?attempt.inner().store_key,
                    "`recover` gave an error: the outcome stays unknown, and the next call asks again; what went wrong is for `recover` to log"
                );
            }
            say_unless_settled(&attempt, &guard.settle(Outcome::Abandon).await);
            Err(Err(results.refuse(Error::OutcomeUnknown {
                context: attempt.context().asked_again(),
            })))
        }
        Ended::Panicked(payload) => {
            say_unless_settled(&attempt, &guard.settle(Outcome::Abandon).await);
            resume_unwind(payload)
        }
        Ended::Stopped | Ended::NeverBegan => {
            observe::report(Observed::Refused);
            Err(Err(results.refuse(lease_lost(guard))))
        }
    }
}

/// The guard tells the store; this tells the caller.
fn lease_lost(guard: AttemptGuard) -> Error {
    let context = guard.attempt().context();
    drop(guard);
    Error::LeaseLost { context }
}

/// Polls `body` as the guarded attempt until it ends, or has to.
async fn run<F: Future>(guard: &mut AttemptGuard, body: Pin<Box<F>>) -> Ended<F::Output> {
    if !guard.begin() {
        return Ended::NeverBegan;
    }
    let attempt = guard.attempt();
    attempt.scope(until_it_ends(attempt, body)).await
}

/// Polls `body` until it ends, or has to. It moves in, so that what it drops still sees its scope.
pub(crate) async fn until_it_ends<F: Future>(
    attempt: &Attempt,
    mut body: Pin<Box<F>>,
) -> Ended<F::Output> {
    let mut stop = pin!(attempt.must_stop());
    poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(context))) {
            Ok(Poll::Ready(result)) => return Poll::Ready(Ended::Returned(result)),
            Ok(Poll::Pending) => {}
            Err(payload) => return Poll::Ready(Ended::Panicked(payload)),
        }
        stop.as_mut().poll(context).map(|()| Ended::Stopped)
    })
    .await
}

/// How the record is to end after this result.
pub(crate) fn outcome_of<T, E>(
    result: &Result<T, E>,
    results: Results<T, E>,
    core: &Core,
    settings: &Settings,
) -> Outcome {
    match result {
        Ok(value) => success(core, settings, || results.encode(value)),
        Err(error) => match results.meaning(error) {
            OnError::Fail => Outcome::Failed,
            OnError::Release => Outcome::Release,
            OnError::Abandon => Outcome::Abandon,
            // An error that can not be stored can not be final either; what it means for the
            // effects is not known.
            OnError::Replay if !results.keeps_errors() => {
                Counters::add(&core.counters.result_not_stored);
                tracing::error!(
                    "an error is to be replayed, but its function stores none (`replay_errors = true`): it counts as abandoned"
                );
                Outcome::Abandon
            }
            OnError::Replay => storable(|| results.encode_error(error), core)
                .map_or(Outcome::Abandon, Outcome::FailedWith),
        },
    }
}

/// How the record of a success is to end.
pub(crate) fn success(
    core: &Core,
    settings: &Settings,
    encode: impl FnOnce() -> Option<Result<Bytes, CodecError>>,
) -> Outcome {
    if settings.forget {
        return Outcome::SuccessForget;
    }
    if settings.on_duplicate == OnDuplicate::Reject {
        return Outcome::Success(None);
    }
    Outcome::Success(storable(encode, core))
}

/// The bytes to store, if there are any and they fit. A serializer that panics has none: the body
/// has succeeded all the same.
fn storable(
    encode: impl FnOnce() -> Option<Result<Bytes, CodecError>>,
    core: &Core,
) -> Option<Bytes> {
    let why = match catch_unwind(AssertUnwindSafe(encode)) {
        Ok(None) => return None,
        Ok(Some(Ok(bytes))) => match core.too_large(&bytes) {
            None => return Some(bytes),
            Some(why) => why,
        },
        Ok(Some(Err(error))) => error.to_string(),
        Err(_) => "its serializer panicked".to_owned(),
    };
    Counters::add(&core.counters.result_not_stored);
    tracing::error!(%why, "a result is not stored; duplicates will get ResultUnavailable");
    None
}

/// What the caller gets for a body that returned `value`.
fn after_success<T, E>(
    attempt: &Attempt,
    results: Results<T, E>,
    value: T,
    settled: Result<SettleReply, StoreError>,
) -> Result<T, E> {
    say_unless_settled(attempt, &settled);
    let Ok(SettleReply::Superseded { current }) = settled else {
        return Ok(value);
    };
    let context = attempt.context();
    let Current::Success { result } = current else {
        return Err(results.refuse(Error::LeaseLost { context }));
    };
    if attempt.inner().settings.on_duplicate == OnDuplicate::Reject {
        return Err(results.refused(Error::Duplicate { context }));
    }
    let reason = match result {
        Some(bytes) => match results.decode(&bytes) {
            Ok(winner) => {
                observe::report(Observed::Replayed);
                return Ok(winner);
            }
            Err(reason) => reason,
        },
        None => "no result was stored".into(),
    };
    Err(results.refused(Error::ResultUnavailable { context, reason }))
}

fn say_unless_settled(attempt: &Attempt, settled: &Result<SettleReply, StoreError>) {
    let key = &attempt.inner().store_key;
    match settled {
        Ok(SettleReply::Settled | SettleReply::Adopted) => {}
        Ok(SettleReply::Superseded { .. }) => {
            tracing::error!(
                ?key,
                "an attempt ended after its record had gone to somebody else"
            );
        }
        Ok(SettleReply::Damaged) => {
            tracing::error!(
                ?key,
                "an attempt ended and found foreign bytes in place of its record"
            );
        }
        Ok(SettleReply::Late) => say_unconfirmed(attempt, "every send was found late"),
        Err(error) => say_unconfirmed(attempt, &error.to_string()),
    }
}

fn say_unconfirmed(attempt: &Attempt, why: &str) {
    let inner = attempt.inner();
    Counters::add(&inner.core.counters.unconfirmed);
    tracing::error!(
        key = ?inner.store_key,
        why,
        "unconfirmed: the caller has its result before the store knows; the settle goes on"
    );
}
