//! Admission: claim, decide, perhaps wait and claim again.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::ask::late;
use super::core::{BusyToken, Core, Counters};
use super::decide::{Decision, Refusal, decide};
use super::guard::{AttemptGuard, ClaimGuard, UnguardedGuard};
use super::wait::Waiter;
use crate::attempt::Attempt;
use crate::driver;
use crate::error::{Context, Error, StoreError, StoreErrorKind};
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::observe::{self, Outcome as Observed};
use crate::policy::{OnStoreError, Settings};
use crate::random;
use crate::record::{Claim, Owner, StoreTime, Subject};
use crate::results::Results;
use crate::store::StoreKey;

/// A request that asks to run.
pub(crate) struct Request<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) key: Key,
    /// Who presents the one-time token that the key stands for.
    pub(crate) subject: Option<Subject>,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) settings: Settings,
}

/// What it got.
pub(crate) enum Admission {
    /// The body may run, as this attempt.
    Run(AttemptGuard),
    /// The body may run although nobody guards it.
    Unguarded(UnguardedGuard),
    /// A stored result.
    Replay { result: Bytes, waited: bool },
    /// A stored error.
    ReplayError { error: Bytes, waited: bool },
}

/// The answer to one claim.
enum Answer {
    Admitted(Admission),
    Not(Decision),
}

impl Request<'_> {
    pub(crate) async fn admit(&self) -> Result<Admission, Error> {
        let store_key = StoreKey::within(&self.core.namespace, &self.key);
        // Also while it waits: it may be granted the record at any moment.
        let _busy = BusyToken::new(self.core);
        let impatient = self.core.busy.impatient();
        // It leaves with the body that it is in: told an error, that would say what it has not done.
        let is_inner = Attempt::current().is_some();
        let waits_until = self.settings.wait.map(driver::moment_in);
        let mut place: Option<Waiter> = None;
        let mut was_closed = false;
        loop {
            let waited = place.is_some();
            let decision = match self.claim(&store_key, waited).await? {
                Answer::Admitted(admission) => return Ok(admission),
                Answer::Not(decision) => decision,
            };
            match decision {
                Decision::Replay(result) => return Ok(Admission::Replay { result, waited }),
                Decision::ReplayError(error) => {
                    return Ok(Admission::ReplayError { error, waited });
                }
                Decision::Refuse(refusal) => return Err(self.refuse(refusal)),
                Decision::Wait {
                    running_for,
                    lease_left,
                } => {
                    let until = waits_until.unwrap_or_else(Instant::now);
                    if Instant::now() < until {
                        self.wait(&store_key, &mut place, lease_left, until).await;
                        if is_inner || self.core.busy.impatient() == impatient {
                            continue;
                        }
                    }
                    let retry_after = lease_left;
                    return Err(self.refuse(Refusal::InProgress {
                        running_for,
                        retry_after,
                    }));
                }
                Decision::ClaimAnew if !was_closed => was_closed = true,
                // A new attempt that was closed as well, or a grant that nobody guards: no answer
                // that would allow anything.
                Decision::ClaimAnew | Decision::Run(_) => return Err(self.refuse(Refusal::Late)),
            }
        }
    }

    /// Waits for a reason to claim again: first for the subscription, then for a sign.
    async fn wait(
        &self,
        key: &StoreKey,
        place: &mut Option<Waiter>,
        lease_left: Duration,
        until: Instant,
    ) {
        match place {
            None => {
                let lease = self.settings.terms.lease;
                *place = Some(Waiter::join(self.core, key, lease, until).await);
            }
            Some(waiter) => waiter.changed(until.min(Instant::now() + lease_left)).await,
        }
    }

    /// One claim, as a new attempt.
    async fn claim(&self, key: &StoreKey, waited: bool) -> Result<Answer, Error> {
        let owner = Owner::from_bytes(random::bits()?);
        let settings = &self.settings;
        let mut claim = Claim {
            owner,
            terms: settings.terms,
            fingerprint: self.fingerprint,
            policy: settings.on_abandoned,
            checkpoint: !settings.own_checkpoint,
            token: self.subject,
            recover: settings.recover,
            wait: settings.wait.is_some(),
            not_after: StoreTime::default(),
        };
        let guard = ClaimGuard::new(self.core, key, owner, settings.terms);
        let asked = match self.core.ask(key, &mut claim, &guard.unanswered).await {
            Ok(asked) => asked,
            Err(source) if self.runs_without_an_answer(&source, waited) => {
                Counters::add(&self.core.counters.unguarded);
                tracing::error!(?key, error = %source, "the store gave no answer; running unguarded");
                let guard = guard.run_unguarded(*settings);
                return Ok(Answer::Admitted(Admission::Unguarded(guard)));
            }
            Err(source) => {
                self.core.away.refused(&source);
                return Err(source.into());
            }
        };
        let decision = decide(asked.reply, asked.now, settings);
        let Decision::Run(grant) = decision else {
            return Ok(Answer::Not(decision));
        };
        let attempt = Attempt::granted(
            self.core.clone(),
            (self.key.clone(), key.clone()),
            owner,
            *settings,
            self.fingerprint,
            (grant, asked.now, asked.sent),
        );
        let guard = AttemptGuard::new(attempt, guard.granted());
        Ok(Answer::Admitted(Admission::Run(guard)))
    }

    /// Whether the body may run unguarded. Not on any answer: somebody may have the record, a store
    /// that is full refuses so that it need not forget, and a wrong set-up would stay without guards.
    /// And not beside an attempt that was waited for.
    fn runs_without_an_answer(&self, error: &StoreError, waited: bool) -> bool {
        self.settings.on_store_error == OnStoreError::Run
            && error.kind() == StoreErrorKind::Unavailable
            && !waited
    }

    pub(crate) fn refuse(&self, refusal: Refusal) -> Error {
        refusal.into_error(self.context())
    }

    /// The caller's answer where a stored one was found, and could be read or not.
    pub(crate) fn replay<T, E>(
        &self,
        results: Results<T, E>,
        decoded: Result<T, Cow<'static, str>>,
        waited: bool,
    ) -> Result<T, E> {
        match decoded {
            Ok(value) => {
                observe::report(replayed(waited));
                Ok(value)
            }
            Err(reason) => Err(results.refused(Error::ResultUnavailable {
                context: self.context(),
                reason,
            })),
        }
    }

    /// The same, where it is an error: whatever can be read of it, it is no success.
    pub(crate) fn replay_error<T, E>(
        &self,
        results: Results<T, E>,
        decoded: Result<E, Cow<'static, str>>,
        waited: bool,
    ) -> Result<T, E> {
        observe::report_stored_error(replayed(waited));
        Err(decoded.unwrap_or_else(|reason| {
            results.refuse(Error::ResultUnavailable {
                context: self.context(),
                reason: format!("it has failed, and its error can not be read: {reason}").into(),
            })
        }))
    }

    pub(crate) fn context(&self) -> Context {
        Context::new(self.key.clone(), self.settings.message)
    }
}

fn replayed(waited: bool) -> Observed {
    if waited {
        Observed::Waited
    } else {
        Observed::Replayed
    }
}

impl Refusal {
    fn into_error(self, context: Context) -> Error {
        match self {
            Self::InProgress {
                running_for,
                retry_after,
            } => Error::InProgress {
                context,
                running_for,
                retry_after,
            },
            Self::Duplicate => Error::Duplicate { context },
            Self::Mismatch => Error::Mismatch { context },
            Self::TokenRejected => Error::TokenRejected { context },
            Self::OutcomeUnknown => Error::OutcomeUnknown { context },
            Self::Refused => Error::Refused { context },
            Self::NoResultStored => Error::ResultUnavailable {
                context,
                reason: "no result was stored".into(),
            },
            Self::Damaged => Error::Damaged { context },
            Self::Late => late().into(),
        }
    }
}
