//! A request's body.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use crate::answer::Refusal;

/// JSON; the default value where no body was sent.
#[derive(Debug)]
pub struct Input<T>(pub T);

impl<T, S> FromRequest<S> for Input<T>
where
    T: DeserializeOwned + Default + 'static,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let json = Option::<Json<T>>::from_request(request, state).await?;
        Ok(Self(json.map_or_else(T::default, |Json(value)| value)))
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
