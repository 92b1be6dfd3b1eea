//! One-time tokens: issued to somebody, used once by the same.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ask::{Unanswered, late};
use super::{Changes, Idempotency, Target};
use crate::error::{Context, Error, StoreError, StoreErrorKind};
use crate::fingerprint::Fingerprint;
use crate::key::{Key, KeyPart, check_prefix};
use crate::observe::{self, Outcome};
use crate::policy::{LONGEST_EXPIRE, Policy, invalid};
use crate::record::{Issue, IssueReply, StoreTime};
use crate::results::Results;
use crate::token::{self, AsToken, Token};

/// One-time tokens of one business type. Made by [`Idempotency::tokens`].
///
/// A token is issued to a **subject**, whoever is signed in, and accepted from nobody else. Take
/// the subject from the session in both places, never from the request: what a request says of its
/// sender anyone can say. Issue by POST: a GET is fetched ahead and kept in caches.
///
/// The token is the key of its record. [`run`](Self::run), or `#[idempotent(token = …)]` with the
/// same prefix, claims it, and keeps the result for its own subject's repetitions; a body that
/// failed hands it back. [`consume`](Self::consume) only uses it up. A store holds hashes of token
/// and subject, and neither itself.
///
/// A token that is unknown, used up, expired, malformed, missing or somebody else's gets
/// [`Error::TokenRejected`] in one round trip, whatever state its record is in.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), idem_core::Error> {
/// use std::time::Duration;
/// use idem_core::{Error, Idempotency};
///
/// let idem = Idempotency::memory();
/// let tokens = idem.tokens("order:submit");
/// let token = tokens.issue("alice", Duration::from_secs(1800)).await?;
///
/// let stolen = tokens.consume(&token, "mallory").await;
/// assert!(matches!(stolen, Err(Error::TokenRejected { .. })));
/// tokens.consume(&token, "alice").await?;
/// let again = tokens.consume(&token, "alice").await;
/// assert!(matches!(again, Err(Error::TokenRejected { .. })));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Tokens {
    idem: Idempotency,
    prefix: Arc<str>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Idempotency {
    /// One-time tokens of the business type `prefix`. A prefix that can not be one is
    /// [`Error::InvalidKey`] at every use.
    #[must_use]
    pub fn tokens(&self, prefix: &str) -> Tokens {
        Tokens {
            idem: self.clone(),
            prefix: prefix.into(),
        }
    }
}

impl Tokens {
    /// A new token for `subject`, to be used within `ttl`: from a millisecond to
    /// [`LONGEST_EXPIRE`].
    ///
    /// # Errors
    /// [`Error::MissingKey`] for a blank subject, [`Error::InvalidPolicy`] for a time that can not
    /// be, [`Error::Store`] if the store gave no answer: ask for another token then.
    ///
    /// # Cancel safety
    /// Dropped, a token that nobody knows may lie in the store until its time is over.
    pub async fn issue(&self, subject: impl KeyPart, ttl: Duration) -> Result<Token, Error> {
        let token = Token::draw()?;
        let key = self.key(&token)?;
        let mut issue = Issue {
            subject: token::subject_of(&self.prefix, &subject)?,
            ttl: allowed(ttl)?,
            not_after: StoreTime::default(),
        };
        let core = &self.idem.core;
        let store_key = self.idem.store_key(&key);
        let asked = core
            .ask(&store_key, &mut issue, &Unanswered::default())
            .await?;
        match asked.reply {
            IssueReply::Issued => Ok(token),
            IssueReply::Taken => Err(taken().into()),
            IssueReply::Late => Err(late().into()),
            IssueReply::Damaged => Err(Error::Damaged {
                context: Context::new(key, None),
            }),
        }
    }

    /// Uses the token up: the body of [`run`](Self::run) is what follows this call.
    ///
    /// # Errors
    /// [`Error::TokenRejected`] unless it is an unused token of `subject`'s. [`Error::MissingKey`]
    /// for a blank subject. [`Error::InProgress`] if somebody else's use of it has not ended within
    /// the engine's `wait`. [`Error::OutcomeUnknown`] if the process that used it up died before it
    /// knew. [`Error::LeaseLost`] if the answer came so late that it counts as lost.
    /// [`Error::Store`] if the store gave no answer.
    ///
    /// # Cancel safety
    /// Dropped, the token may be used up or not.
    ///
    /// # Concurrent calls on the same key
    /// One is `Ok`. The others wait for it to end, and are rejected.
    pub async fn consume(&self, token: impl AsToken, subject: impl KeyPart) -> Result<(), Error> {
        const USE_UP: Policy = Policy::new().forget().hold_abandoned().wait_in_progress();
        let results = Results::unstored();
        self.run_with(token, subject, USE_UP, results, None, async || Ok(()))
            .await
    }

    /// Runs `body` once for the token, and gives its result to its subject's repetitions: the form
    /// for programs of `#[idempotent(token = …, subject = …)]`.
    ///
    /// With [`Policy::forget`] nothing is kept, and a repetition is rejected. A body that failed
    /// hands the token back, for the time that it has left.
    ///
    /// # Errors
    /// What the body returns, and [`Error`] as `E` wherever it does not run:
    /// [`Error::TokenRejected`] for a token that is not `subject`'s, in every state;
    /// [`Error::InvalidPolicy`] if `policy` would run it without a guard, which lets any token in.
    ///
    /// # Cancel safety
    /// As for [`Idempotency::run`]. Dropped before the body began, the token is handed back.
    ///
    /// # Concurrent calls on the same key
    /// One runs; the same subject's others get [`Error::InProgress`], or wait where the policy says
    /// so.
    pub async fn run<T, E, F>(
        &self,
        token: impl AsToken,
        subject: impl KeyPart,
        policy: Policy,
        body: impl FnOnce() -> F,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        self.run_with(token, subject, policy, Results::stored(), None, body)
            .await
    }

    /// [`run`](Self::run) with a say in how results travel, and a hash of the payload that a
    /// repetition has to equal. A token that was handed back takes another payload.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn run_with<T, E, F>(
        &self,
        token: impl AsToken,
        subject: impl KeyPart,
        policy: Policy,
        results: Results<T, E>,
        fingerprint: Option<Fingerprint>,
        body: impl FnOnce() -> F,
    ) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<T, E>>,
    {
        let Some(policy) = policy.always_guarded() else {
            observe::report(Outcome::Refused);
            return Err(E::from(invalid(
                "a token that nobody has checked can not be let in; leave out `run_on_store_error` and `run_on_missing_key`",
            )));
        };
        let target = self.target(&token, &subject);
        self.idem
            .run_target(target, policy, results, fingerprint, body)
            .await
    }

    /// Takes the token back: from now on it is rejected. One that is being used is left alone.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] for a prefix that can not be one, [`Error::Store`] if the store gave
    /// no answer.
    pub async fn forget(&self, token: impl AsToken) -> Result<Changes, Error> {
        self.idem.forget(&self.key(&token)?).await
    }

    /// The key of the token's record, for [`peek`](Idempotency::peek) and other looks at it. It
    /// holds a hash.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] for a prefix that can not be one.
    pub fn key(&self, token: impl AsToken) -> Result<Key, Error> {
        check_prefix(&self.prefix)?;
        Ok(token::key(&self.prefix, &token))
    }

    fn target(&self, token: &impl AsToken, subject: &impl KeyPart) -> Result<Target, Error> {
        Ok(Target {
            key: self.key(token)?,
            subject: Some(token::subject_of(&self.prefix, subject)?),
        })
    }
}

fn allowed(ttl: Duration) -> Result<Duration, Error> {
    if ttl < Duration::from_millis(1) || ttl > LONGEST_EXPIRE {
        return Err(invalid(format!(
            "a token's time is {ttl:?}; allowed is 1 ms to {LONGEST_EXPIRE:?}"
        )));
    }
    Ok(ttl)
}

/// 128 bits are not drawn twice, but by a copy of a machine that was frozen.
fn taken() -> StoreError {
    StoreError::new(
        StoreErrorKind::Protocol,
        "a token that was just drawn exists already",
    )
}
