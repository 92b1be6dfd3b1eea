//! What the client's errors mean here.

use ::redis::{ErrorKind, RedisError};

use crate::error::{StoreError, StoreErrorKind};

/// An error of a call, and whether its connection is of no more use.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: StoreError,
    pub(super) replace: bool,
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        let code = code(&error);
        let kind = match code {
            Some(code) => kind_of_answer(code),
            None => kind_of_failure(error.kind()),
        };
        let replace = match code {
            Some(code) => is_about_the_node(code),
            None => kind != StoreErrorKind::Protocol,
        };
        Self {
            error: StoreError::new(kind, format!("redis: {error}")).with_source(error),
            replace,
        }
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

fn kind_of_failure(kind: ErrorKind) -> StoreErrorKind {
    match kind {
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::EmptySentinelList => StoreErrorKind::Misconfigured,
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => StoreErrorKind::Protocol,
        _ => StoreErrorKind::Unavailable,
    }
}

/// Answers that the same node will go on giving, while another may have taken its place.
fn is_about_the_node(code: &str) -> bool {
    matches!(
        code,
        "READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "NOAUTH"
    )
}

pub(super) fn misconfigured(detail: impl Into<std::borrow::Cow<'static, str>>) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, detail)
}
