//! Answers: JSON, and in a header how the guarded call came to it.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use idem_core::Outcome;
use serde::Serialize;

use crate::causes::causes;

/// `executed`, `replayed`, `waited`, `recovered` or `refused`.
pub const OUTCOME: HeaderName = HeaderName::from_static("idempotency-outcome");

/// A request that was not done: `{"code": …, "message": …}`.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// A refusal that a retry does not change.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// There is no such path, or nothing under it.
    #[must_use]
    pub fn nothing_here() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "There is nothing here.")
    }

    /// Something of ours failed: the log says what, the client does not hear it.
    pub fn internal(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = %causes(error), "a request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Something went wrong on our side.",
        )
    }
}

impl From<idem_core::Error> for Refusal {
    fn from(error: idem_core::Error) -> Self {
        let status = StatusCode::from_u16(error.http_status());
        Self {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code: error.code(),
            message: error.message().to_owned(),
            retry_after: error.retry_after(),
        }
    }
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        Self::internal(&error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body {
            code: &'static str,
            message: String,
        }
        let body = Body {
            code: self.code,
            message: self.message,
        };
        let mut response = (self.status, Json(body)).into_response();
        if let Some(wait) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, whole_seconds(wait).into());
        }
        response
    }
}

/// Rounded up: a client that comes back earlier comes in vain.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// The answer to an [observed](fn@idem_core::observe) call.
pub fn answer<T, E>(success: StatusCode, (result, outcome): (Result<T, E>, Outcome)) -> Response
where
    T: Serialize,
    E: Into<Refusal>,
{
    respond((result.map(|value| (success, Json(value))), outcome))
}

/// The same, where the value is a response already.
pub fn respond<T, E>((result, outcome): (Result<T, E>, Outcome)) -> Response
where
    T: IntoResponse,
    E: Into<Refusal>,
{
    let mut response = match result {
        Ok(value) => value.into_response(),
        Err(error) => error.into().into_response(),
    };
    if let Some(name) = name(outcome) {
        let name = HeaderValue::from_static(name);
        response.headers_mut().insert(OUTCOME, name);
    }
    response
}

fn name(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Executed => Some("executed"),
        Outcome::Replayed => Some("replayed"),
        Outcome::Waited => Some("waited"),
        Outcome::Recovered => Some("recovered"),
        Outcome::Refused => Some("refused"),
        _ => None,
    }
}
