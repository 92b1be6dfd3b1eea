//! Who is logged in: a name in a signed cookie. There is no password, since this is an example of
//! something else.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};

use crate::answer::Refusal;
use crate::seal::Seal;

const COOKIE: &str = "session";

/// Whoever is logged in. No request can say so of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Their name.
    pub name: String,
}

/// The sessions of this service.
#[derive(Debug, Clone)]
pub struct Sessions(Seal);

impl Sessions {
    /// Sessions that this seal makes good.
    #[must_use]
    pub fn new(seal: Seal) -> Self {
        Self(seal)
    }

    /// The cookie that logs a user in.
    ///
    /// # Errors
    /// `invalid_user` for a name that is not 1 to 20 letters from a to z.
    pub fn open(&self, user: &User) -> Result<HeaderValue, Refusal> {
        let is_letter = |byte: u8| byte.is_ascii_lowercase();
        let name = &user.name;
        if !(1..=20).contains(&name.len()) || !name.bytes().all(is_letter) {
            let rule = "a name has 1 to 20 letters from a to z";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "invalid_user", rule));
        }
        let signature = self.0.sign(name.as_bytes());
        let cookie = format!("{COOKIE}={name}.{signature}; Path=/; HttpOnly; SameSite=Strict");
        HeaderValue::from_str(&cookie).map_err(|error| Refusal::internal(&error))
    }

    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
        let mut cookies = cookies
            .split(';')
            .filter_map(|cookie| cookie.trim().split_once('='));
        let (_, value) = cookies.find(|(name, _)| *name == COOKIE)?;
        let (name, signature) = value.split_once('.')?;
        let is_ours = self.0.is_signed(name.as_bytes(), signature);
        is_ours.then(|| User {
            name: name.to_owned(),
        })
    }
}

impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let sessions = parts.extensions.get::<Sessions>();
        let user = sessions.and_then(|sessions| sessions.user(&parts.headers));
        user.ok_or_else(|| Refusal::new(StatusCode::UNAUTHORIZED, "not_logged_in", "Log in first."))
    }
}
