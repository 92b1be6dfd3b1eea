//! What a request says: its path and its body.

use axum::Json;
use axum::body::HttpBody;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::answer::Refusal;

/// JSON; the default value where no body was sent. A body that does not say that it is JSON is not
/// the same: somebody has chosen a card, and would pay by another.
#[derive(Debug)]
pub struct Input<T>(pub T);

impl<T, S> FromRequest<S> for Input<T>
where
    T: DeserializeOwned + Default + 'static,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let is_named = request.headers().contains_key(header::CONTENT_TYPE);
        if !is_named && request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        let Json(value) = <Json<T> as FromRequest<S>>::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// The number in a path. Under one that [no database can keep](fits) there is nothing: a database
/// that is asked for it fails, and what fails is not forgotten as soon as what is not there.
#[derive(Debug)]
pub struct Number(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Number {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(number)) if fits(&number) => Ok(Self(number)),
            _ => Err(Refusal::nothing_here()),
        }
    }
}

/// Whether every database here can keep it as an id or a name: at most 100 bytes, and no control
/// characters, since `PostgreSQL` has no NUL.
#[must_use]
pub fn fits(text: &str) -> bool {
    text.len() <= 100 && !text.contains(char::is_control)
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), "bad_input", rejection.body_text())
    }
}
