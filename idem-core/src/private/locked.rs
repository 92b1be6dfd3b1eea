//! What the code of `#[locked]` calls.

use std::future::Future;
use std::pin::Pin;

use crate::engine::Idempotency;
use crate::error::Error;
use crate::key::KeyBuilder;
use crate::lock::LockGuard;
use crate::observe::{self, Outcome};
use crate::policy::Policy;
use crate::results::Results;

/// One call of a function under a lock.
#[derive(Debug)]
pub struct LockCall<T, E> {
    policy: Policy,
    engine: Option<Idempotency>,
    results: Results<T, E>,
}

impl<T, E> LockCall<T, E> {
    /// A call; `results` says how a refusal becomes an `E`.
    #[must_use]
    pub fn new(policy: Policy, engine: Option<&Idempotency>, results: Results<T, E>) -> Self {
        Self {
            policy,
            engine: engine.cloned(),
            results,
        }
    }
}

/// Whether the lock is held.
#[derive(Debug)]
pub enum Locked<T, E> {
    /// No: this is the caller's answer.
    Answer(Result<T, E>),
    /// Yes.
    Run(LockedRun<T, E>),
}

/// A body that may run under its lock.
#[derive(Debug)]
pub struct LockedRun<T, E> {
    guard: LockGuard,
    results: Results<T, E>,
}

/// Acquires the lock on `key`.
pub async fn lock<T, E>(call: LockCall<T, E>, key: KeyBuilder) -> Locked<T, E> {
    let LockCall {
        policy,
        engine,
        results,
    } = call;
    match acquire(policy, engine, key).await {
        Ok(guard) => Locked::Run(LockedRun { guard, results }),
        Err(error) => {
            observe::report(Outcome::Refused);
            Locked::Answer(Err(results.refuse(error)))
        }
    }
}

async fn acquire(
    policy: Policy,
    engine: Option<Idempotency>,
    key: KeyBuilder,
) -> Result<LockGuard, Error> {
    let engine = engine.map_or_else(Idempotency::current, Ok)?;
    engine.lock(key.finish()?).policy(policy).acquire().await
}

impl<T, E> LockedRun<T, E> {
    /// Runs the body, and releases the lock however it ends.
    pub async fn execute<F>(self, body: Pin<Box<F>>) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let Self { guard, results } = self;
        let ended = Box::pin(guard.run(body)).await;
        // After the body, so that no guarded call in it speaks for the whole.
        observe::report(Outcome::Executed);
        ended.unwrap_or_else(|error| Err(results.refuse(error)))
    }

    /// The same, of a function that is idempotent as well: how that came to its result is the last
    /// word.
    pub async fn execute_guarded<F>(self, body: Pin<Box<F>>) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let Self { guard, results } = self;
        observe::report(Outcome::Executed);
        let ended = Box::pin(guard.run(body)).await;
        ended.unwrap_or_else(|error| Err(results.refuse(error)))
    }
}
