//! What the client's errors mean here.

use ::redis::{ErrorKind, RedisError};

use crate::error::{StoreError, StoreErrorKind};

/// An error of a call, and what it says about the connection.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: StoreError,
    pub(super) harm: Harm,
}

/// What an error says about the connection, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Harm {
    /// Nothing.
    None,
    /// It is broken.
    Connection,
    /// The node at its other end is of no use now; another may have taken its place.
    Node,
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        let (kind, harm) = match code(&error) {
            Some(code) => (kind_of_answer(code), harm_of_answer(code)),
            None => kind_and_harm_of_failure(error.kind()),
        };
        // An error that the server answered is raised before anything is written.
        let is_undone = kind == StoreErrorKind::Refused || kind == StoreErrorKind::Misconfigured;
        let error = StoreError::new(kind, format!("redis: {error}")).with_source(error);
        Self {
            error: if is_undone {
                error.before_sending()
            } else {
                error
            },
            harm,
        }
    }
}

impl Fault {
    /// A failure of the connection itself.
    pub(super) fn of_connection(error: StoreError) -> Self {
        Self {
            error,
            harm: Harm::Connection,
        }
    }

    /// Whether the user has no right to what was asked.
    pub(super) fn is_denied(&self) -> bool {
        self.harm == Harm::None && self.error.kind() == StoreErrorKind::Misconfigured
    }
}

/// The server's error code. One that was raised inside a script on Redis 6.2 stands in the text.
fn code(error: &RedisError) -> Option<&str> {
    let code = error.code()?;
    let inner = error.detail().filter(|_| code == "ERR").and_then(|detail| {
        let (_, from_code) = detail.split_once(": -")?;
        from_code.split_whitespace().next()
    });
    Some(inner.unwrap_or(code))
}

fn kind_of_answer(code: &str) -> StoreErrorKind {
    match code {
        "OOM" | "READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY"
        | "MISCONF" | "NOREPLICAS" | "MOVED" | "ASK" => StoreErrorKind::Refused,
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" => StoreErrorKind::Misconfigured,
        _ => StoreErrorKind::Protocol,
    }
}

fn harm_of_answer(code: &str) -> Harm {
    match code {
        "READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "NOAUTH" => Harm::Node,
        _ => Harm::None,
    }
}

fn kind_and_harm_of_failure(kind: ErrorKind) -> (StoreErrorKind, Harm) {
    match kind {
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::RESP3NotSupported => (StoreErrorKind::Misconfigured, Harm::Connection),
        ErrorKind::UnexpectedReturnType => (StoreErrorKind::Protocol, Harm::None),
        ErrorKind::Parse => (StoreErrorKind::Protocol, Harm::Connection),
        _ => (StoreErrorKind::Unavailable, Harm::Connection),
    }
}

pub(super) fn misconfigured(detail: impl Into<std::borrow::Cow<'static, str>>) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, detail)
}
