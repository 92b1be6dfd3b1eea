//! What can go wrong, in few kinds that a caller can act on.

mod context;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::context::Context;

/// Why a guarded call did not run its body, or could not give its answer.
///
/// Each kind says what to do next: [`code`](Error::code) for programs, [`message`](Error::message)
/// for the user, [`is_retryable`](Error::is_retryable) and [`retry_after`](Error::retry_after) for
/// whoever retries, [`http_status`](Error::http_status) for a web front. The text of `Display` is
/// for logs: it names keys by their prefix and a short hash only.
///
/// # Examples
/// ```
/// use idem_core::Error;
///
/// let error = Error::MissingKey { part: "request.order_no".into() };
/// assert_eq!(error.code(), "missing_key");
/// assert_eq!(error.http_status(), 400);
/// assert!(!error.is_retryable());
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A live attempt holds the key, or somebody holds the lock. Try again after `retry_after`, or
    /// wait with `in_progress = "wait"`; for a lock with `wait`. (A call with `tx` waits for other
    /// transactions, but for no attempt in lease mode.)
    #[error(
        "{context} {}; try again in {retry_after:?}{}",
        if context.key.is_lock() { "is held" } else { "is being processed" },
        if context.key.is_lock() { ", or wait for it with `wait`" } else { "" },
    )]
    InProgress {
        /// Which call was refused.
        context: Context,
        /// How long the live attempt has been running, by the store's clock. Zero where only the
        /// lock of its transaction tells of it.
        running_for: Duration,
        /// What is left of its lease. By then it has ended, renewed it, or died; it may end sooner.
        /// A second where only the lock of its transaction tells of it.
        retry_after: Duration,
    },
    /// The request was done before, and its result is not replayed (`on_duplicate = "reject"`).
    #[error("{context} was already done")]
    Duplicate {
        /// Which call was refused.
        context: Context,
    },
    /// The key was used before with another payload (`fingerprint = …`). Use a new key for a new
    /// request.
    #[error("{context} was used before with another payload; a new request needs a new key")]
    Mismatch {
        /// Which call was refused.
        context: Context,
    },
    /// A part of the key is `None`, empty or blank; the body did not run and nothing was written.
    #[error(
        "the key part `{part}` is missing or blank; send it, or say on_missing_key = \"run\" to run without a guard"
    )]
    MissingKey {
        /// The path as written in the attribute, or its position.
        part: Cow<'static, str>,
    },
    /// A prefix, namespace or key text that can not be used.
    #[error("invalid key: {reason}")]
    InvalidKey {
        /// What is wrong and what is allowed.
        reason: Cow<'static, str>,
    },
    /// Options that contradict one another, a second process default, or a store whose set-up a
    /// [strict](crate::Idempotency::strict) engine refuses.
    #[error("misconfigured: {reason}")]
    InvalidPolicy {
        /// What is wrong and what is allowed.
        reason: Cow<'static, str>,
    },
    /// The one-time token is missing, malformed, unknown, used, expired or somebody else's: one
    /// answer for all, so that nobody learns from it what there is. Its user asks for a new one.
    #[error("the one-time token was not accepted; ask for a new one")]
    TokenRejected {
        /// Which call was refused.
        context: Context,
    },
    /// An earlier attempt died after its effects may have begun, and nobody has said yet whether
    /// they happened. Look it up and `resolve` the key, or give the function a `recover`.
    ///
    /// Of a function that has one, it says that `recover` could not tell or has failed. The next call
    /// asks it again, so this is [retryable](Error::is_retryable) then, and only then.
    #[error(
        "the outcome of {context} is unknown: an attempt died after its effects may have begun; {}",
        if context.asks_again {
            "`recover` could not tell, and the next call asks it again"
        } else {
            "look it up and resolve the key, or add `recover`"
        },
    )]
    OutcomeUnknown {
        /// Which call was refused.
        context: Context,
    },
    /// The key was refused beforehand (a Cancel that arrived before its Try).
    #[error("{context} was refused before it began")]
    Refused {
        /// Which call was refused.
        context: Context,
    },
    /// This attempt lost its record while the body ran: renewals failed for too long, or somebody
    /// ended it. Its result was not recorded. Retry with the same key. Of a lock: it was not held
    /// to the end.
    #[error("the attempt on {context} lost its lease; retry with the same key")]
    LeaseLost {
        /// Which call lost it.
        context: Context,
    },
    /// The request has an end already, but its result was not kept or can not be read any more. The
    /// body is never run again for that.
    #[error("{context} was already processed, but its result is not available: {reason}")]
    ResultUnavailable {
        /// Which call was refused.
        context: Context,
        /// Why there is nothing to replay.
        reason: Cow<'static, str>,
    },
    /// Two annotated functions share one prefix in one engine; their results would be mixed up.
    #[error("prefix `{prefix}` is used by both {first} and {second}; give each function its own")]
    PrefixConflict {
        /// The shared prefix.
        prefix: Cow<'static, str>,
        /// The function that called first.
        first: String,
        /// The function that was refused.
        second: String,
    },
    /// No engine was installed. Call `Idempotency::install` at start-up, or name one with
    /// `engine = …`.
    #[error(
        "no idempotency engine is installed; call `install()` on one at start-up, or name one with `engine = …`"
    )]
    NotInstalled,
    /// The store holds bytes at this key that are not a record this version can read. Where a later
    /// version of this library has written there, bring this process up to date: its records are not
    /// to be forgotten. Else look at the bytes before you `forget` the key by force.
    #[error(
        "the store holds something at {context} that is no record of a version this build can read; bring the build up to date if a later one has written there, else look at it, then forget the key by force"
    )]
    Damaged {
        /// Which call was refused.
        context: Context,
    },
    /// The store gave no usable answer; whether it did what was asked is not known. Before the
    /// body ran this is always safe to retry with the same key.
    #[error(transparent)]
    Store {
        /// What the store, its client or the network said.
        source: StoreError,
    },
}

impl Error {
    /// A stable, machine-readable name of the kind, in `snake_case`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.facts().code
    }

    /// The text to show to a user: the attribute's `message` where one was given, otherwise a
    /// plain sentence without internals.
    #[must_use]
    pub fn message(&self) -> &str {
        self.context()
            .and_then(|context| context.message)
            .unwrap_or(self.facts().message)
    }

    /// Whether the same call with the same key may give another answer later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InProgress { .. } | Self::LeaseLost { .. } => true,
            Self::OutcomeUnknown { context } => context.asks_again,
            Self::Store { source } => source.kind != StoreErrorKind::Misconfigured,
            _ => false,
        }
    }

    /// When a retry makes sense, where that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InProgress { retry_after, .. } => Some(*retry_after),
            Self::Store { .. } | Self::LeaseLost { .. } | Self::OutcomeUnknown { .. }
                if self.is_retryable() =>
            {
                Some(Duration::from_secs(1))
            }
            _ => None,
        }
    }

    /// The HTTP status that fits this kind.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        self.facts().http_status
    }

    /// Which call this is about, where its key was known.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        match self {
            Self::InProgress { context, .. }
            | Self::Duplicate { context }
            | Self::Mismatch { context }
            | Self::TokenRejected { context }
            | Self::OutcomeUnknown { context }
            | Self::Refused { context }
            | Self::LeaseLost { context }
            | Self::ResultUnavailable { context, .. }
            | Self::Damaged { context } => Some(context),
            Self::MissingKey { .. }
            | Self::InvalidKey { .. }
            | Self::InvalidPolicy { .. }
            | Self::PrefixConflict { .. }
            | Self::NotInstalled
            | Self::Store { .. } => None,
        }
    }

    fn facts(&self) -> Facts {
        let (code, http_status, message) = match self {
            Self::InProgress { .. } => ("in_progress", 409, "This request is being processed."),
            Self::Duplicate { .. } => ("duplicate", 409, "This request was already done."),
            Self::Mismatch { .. } => ("mismatch", 422, "This request differs from the first one."),
            Self::MissingKey { .. } => ("missing_key", 400, "A required value is missing."),
            Self::InvalidKey { .. } => ("invalid_key", 400, "A value can not be used."),
            Self::InvalidPolicy { .. } => ("invalid_policy", 500, "The service is misconfigured."),
            Self::TokenRejected { .. } => ("token_rejected", 403, "This form is no longer valid."),
            Self::OutcomeUnknown { .. } => (
                "outcome_unknown",
                409,
                "The outcome of this request is being checked.",
            ),
            Self::Refused { .. } => ("refused", 409, "This request was cancelled."),
            Self::LeaseLost { .. } => ("lease_lost", 503, "Please try again."),
            Self::ResultUnavailable { .. } => (
                "result_unavailable",
                409,
                "This request was already processed.",
            ),
            Self::PrefixConflict { .. } => {
                ("prefix_conflict", 500, "The service is misconfigured.")
            }
            Self::NotInstalled => ("not_installed", 500, "The service is misconfigured."),
            Self::Damaged { .. } => ("damaged", 500, "This request can not be read any more."),
            Self::Store { .. } => ("store", 503, "Please try again in a moment."),
        };
        Facts {
            code,
            http_status,
            message,
        }
    }
}

struct Facts {
    code: &'static str,
    http_status: u16,
    message: &'static str,
}

impl From<StoreError> for Error {
    fn from(source: StoreError) -> Self {
        Self::Store { source }
    }
}

/// What a store, its client or the network said. The cause is kept as the error's source.
#[derive(Debug, Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    detail: Cow<'static, str>,
    is_before_sending: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Kinds of [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No answer within the call's limit, or no connection.
    Unavailable,
    /// The store answered that it can not take the write now: full, out of memory, read-only, loading.
    Refused,
    /// Other transactions were in the way: a deadlock, a serialization failure, a lock that somebody
    /// kept, a statement that was stopped as it waited, other calls with all the connections. Nothing
    /// is wrong with the store; do it again, in a new transaction.
    Conflict,
    /// Wrong password, missing rights, a server that is too old: somebody has to change the set-up.
    Misconfigured,
    /// An answer that this version does not know. It is never taken as a permission.
    Protocol,
}

impl StoreError {
    /// An error of the given kind; `detail` names what was tried or what was answered.
    #[must_use]
    pub fn new(kind: StoreErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            is_before_sending: false,
            source: None,
        }
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Says that nothing was sent: the store surely did not do it.
    #[must_use]
    pub fn before_sending(mut self) -> Self {
        self.is_before_sending = true;
        self
    }

    /// Whether it is sure that the store never saw the operation.
    #[must_use]
    pub fn is_before_sending(&self) -> bool {
        self.is_before_sending
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the idempotency store gave no usable answer: {}",
            self.detail
        )
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
