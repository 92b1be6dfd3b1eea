//! What generated code calls. Not a public interface: it changes with the macro.

mod bounds;
mod locked;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub mod transaction;

pub use std::boxed::Box;
use std::future::Future;
use std::pin::Pin;

use serde::Serialize;
use tracing::Instrument;

use crate::engine::Target;
use crate::engine::run::{self, Admitted as Admission};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::observe;
use crate::token::{self, AsToken};

pub use crate::engine::{Idempotency, Recovered, Site};
pub use crate::key::KeyBuilder;
pub use crate::policy::{OnError, Policy};
pub use crate::results::Results;
pub use bounds::{Returned, present, replay_errors, stored, unstored};
pub use locked::{LockCall, Locked, LockedRun, lock};

/// One call of an annotated function.
#[derive(Debug)]
pub struct Call<T, E> {
    site: &'static Site,
    policy: Policy,
    engine: Option<Idempotency>,
    results: Results<T, E>,
    fingerprint: Result<Option<Fingerprint>, Error>,
    /// The key of the one-time token that was presented.
    token: Option<Key>,
}

impl<T, E> Call<T, E> {
    /// A call of the function at `site`.
    #[must_use]
    pub fn new(
        site: &'static Site,
        policy: Policy,
        engine: Option<&Idempotency>,
        results: Results<T, E>,
    ) -> Self {
        Self {
            site,
            policy,
            engine: engine.cloned(),
            results,
            fingerprint: Ok(None),
            token: None,
        }
    }

    /// With a payload that has to be equal for one key.
    pub fn fingerprint(&mut self, payload: &(impl Serialize + ?Sized)) {
        self.fingerprint = Fingerprint::of(payload).map(Some);
    }

    /// With a one-time token: what is built as the key is then the subject who presents it.
    pub fn token(&mut self, token: &(impl AsToken + ?Sized)) {
        self.token = Some(token::key(self.site.prefix(), token));
    }

    /// …that is not there.
    pub fn no_token(&mut self) {
        self.token(&None::<&str>);
    }

    fn target(&self, key: Result<Key, Error>) -> Result<Target, Error> {
        let key = key?;
        Ok(match &self.token {
            None => key.into(),
            Some(token) => Target {
                key: token.clone(),
                subject: Some(token::subject(&key)),
            },
        })
    }

    /// Its engine, if it may be used under this prefix, and its fingerprint.
    fn checked(&self) -> Result<(Idempotency, Option<Fingerprint>), Error> {
        let engine = self.engine.clone().map_or_else(Idempotency::current, Ok)?;
        engine.check_site(self.site)?;
        Ok((engine, self.fingerprint.clone()?))
    }
}

/// Whether the body may run.
#[derive(Debug)]
pub enum Admitted<T, E> {
    /// No: this is the caller's answer.
    Answer(Result<T, E>),
    /// Yes.
    Run(Run<T, E>),
}

/// A body that may run.
pub struct Run<T, E> {
    admitted: Admission,
    results: Results<T, E>,
}

impl<T, E> std::fmt::Debug for Run<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Asks whether the body of `call` may run for `key`.
pub async fn admit<T, E>(call: Call<T, E>, key: KeyBuilder) -> Admitted<T, E> {
    // Boxed, so that an annotated function's future grows by a pointer and not by all of this.
    match Box::pin(ask(&call, key.finish())).await {
        Ok(admitted) => Admitted::Run(Run {
            admitted,
            results: call.results,
        }),
        Err(answer) => Admitted::Answer(answer),
    }
}

async fn ask<T, E>(call: &Call<T, E>, key: Result<Key, Error>) -> Result<Admission, Result<T, E>> {
    match call.checked() {
        Ok((engine, fingerprint)) => {
            engine
                .admit(call.target(key), call.policy, call.results, fingerprint)
                .await
        }
        Err(error) => Err(Err(call.results.refused(error))),
    }
}

impl<T, E> Run<T, E> {
    /// If an attempt before died after its checkpoint, asks `recover` what became of it.
    pub async fn recover<RE, F>(self, recover: impl FnOnce() -> Pin<Box<F>>) -> Admitted<T, E>
    where
        F: Future<Output = Result<Recovered<T>, RE>>,
    {
        let Self { admitted, results } = self;
        match admitted {
            Admission::Guarded(guard) if guard.attempt().is_in_doubt() => {
                match Box::pin(run::recover(guard, results, recover())).await {
                    Ok(guard) => Admitted::Run(Self {
                        admitted: Admission::Guarded(guard),
                        results,
                    }),
                    Err(answer) => Admitted::Answer(answer),
                }
            }
            admitted => Admitted::Run(Self { admitted, results }),
        }
    }

    /// Runs the body here.
    pub async fn execute<F>(self, body: Pin<Box<F>>) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        Box::pin(self.admitted.execute(self.results, body)).await
    }

    /// Runs the body in a task of its own, so that a caller who goes away can not cancel it.
    pub async fn execute_detached<F>(self, body: Pin<Box<F>>) -> Result<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let results = self.results;
        let run = self.admitted.execute(results, body);
        match tokio::spawn(Idempotency::keep_scope(observe::watch(run)).in_current_span()).await {
            Ok((result, report)) => {
                observe::say(report);
                result
            }
            Err(error) => match error.try_into_panic() {
                Ok(payload) => std::panic::resume_unwind(payload),
                // The runtime went down under it: the record is abandoned.
                Err(error) => Err(results.refuse(task_ended(error))),
            },
        }
    }
}

fn task_ended(error: tokio::task::JoinError) -> Error {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "the runtime ended while the body ran",
    )
    .with_source(error)
    .into()
}
