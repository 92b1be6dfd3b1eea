//! One-time tokens: the text that a form carries, and what the store knows of it.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, StoreError};
use crate::key::{Key, KeyBuilder, KeyPart, push_hex};
use crate::random;
use crate::record::Subject;

/// A one-time token, as [`Tokens::issue`](crate::Tokens::issue) gives it out: 128 random bits,
/// written in 32 characters that need no escaping anywhere.
///
/// `Display` and serde give the text to send; `Debug` shows nothing of it. Any text can be read
/// back as a token: one that was never issued, or was damaged on its way, is refused where it is
/// used, with the answer that every wrong token gets.
///
/// # Examples
/// ```
/// use idem_core::Token;
/// use serde::Deserialize;
///
/// #[derive(Debug, Deserialize)]
/// struct Form { token: Token, amount: u32 }
///
/// let form: Form = serde_json::from_str(r#"{"token":"0f5a…","amount":5}"#)?;
/// assert_eq!(form.token.to_string(), "0f5a…");
/// assert_eq!(format!("{form:?}"), "Form { token: Token(…), amount: 5 }");
/// # let _ = form.amount;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    /// A new one.
    pub(crate) fn draw() -> Result<Self, StoreError> {
        let mut text = String::new();
        push_hex(&mut text, &random::bits()?);
        Ok(Self(text))
    }

    /// The text to send.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl PartialEq for Token {
    /// Takes the same time whatever the other text is: hashes are compared.
    fn eq(&self, other: &Self) -> bool {
        blake3::hash(self.0.as_bytes()) == blake3::hash(other.0.as_bytes())
    }
}

impl Eq for Token {}

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Token {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl FromStr for Token {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.into())
    }
}

/// What a caller presents as a one-time token: a [`Token`], its text, or an option of either.
/// `None` gets the answer that every wrong token gets.
///
/// # Examples
/// ```
/// use idem_core::AsToken;
///
/// struct HiddenField(String);
///
/// impl AsToken for HiddenField {
///     fn as_token(&self) -> Option<&str> {
///         Some(&self.0)
///     }
/// }
/// # assert_eq!(HiddenField("0f5a…".into()).as_token(), Some("0f5a…"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not be a one-time token",
    label = "this is no token",
    note = "a token is a `Token`, a string, or an option of one"
)]
pub trait AsToken {
    /// Its text; `None` if there is none.
    fn as_token(&self) -> Option<&str>;
}

impl AsToken for Token {
    fn as_token(&self) -> Option<&str> {
        Some(&self.0)
    }
}

impl AsToken for str {
    fn as_token(&self) -> Option<&str> {
        Some(self)
    }
}

impl AsToken for String {
    fn as_token(&self) -> Option<&str> {
        Some(self)
    }
}

impl AsToken for Cow<'_, str> {
    fn as_token(&self) -> Option<&str> {
        Some(self)
    }
}

impl<P: AsToken> AsToken for Option<P> {
    fn as_token(&self) -> Option<&str> {
        self.as_ref().and_then(P::as_token)
    }
}

macro_rules! by_target {
    ($($ty:ty)*) => {$(
        impl<P: AsToken + ?Sized> AsToken for $ty {
            fn as_token(&self) -> Option<&str> {
                P::as_token(self)
            }
        }
    )*};
}

by_target!(&P Box<P> Rc<P> Arc<P>);

/// The key under which a store keeps the token: a hash, whatever was presented, so that every
/// wrong token takes the same way to its answer. The prefix is taken as checked.
pub(crate) fn key(prefix: &str, token: &(impl AsToken + ?Sized)) -> Key {
    Key::hiding(prefix, token.as_token().unwrap_or_default())
}

/// Whose token it is: `caller` has the prefix of the token, and the caller's identity as its parts.
pub(crate) fn subject(caller: &Key) -> Subject {
    Subject::of(caller.as_str())
}

/// The same, of a program's value.
pub(crate) fn subject_of(prefix: &str, caller: &impl KeyPart) -> Result<Subject, Error> {
    let mut key = KeyBuilder::new(prefix, "");
    key.part("subject", caller);
    key.finish().map(|caller| subject(&caller))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tokens_differ_and_are_read_back_from_their_text() {
        let token = Token::draw().unwrap();
        assert_ne!(token, Token::draw().unwrap());
        assert_eq!(token.as_str().len(), 32);
        assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        let sent = serde_json::to_string(&token).unwrap();
        assert_eq!(sent, format!("\"{token}\""));
        assert_eq!(serde_json::from_str::<Token>(&sent).unwrap(), token);
    }

    // Y04
    #[test]
    fn debug_shows_nothing_of_a_token() {
        let token = Token::draw().unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn whatever_is_presented_becomes_a_hash() {
        let long = "x".repeat(1000);
        let key = |text: &str| key("order:submit", text);
        let stolen = key("secret").as_str().to_owned();
        let stolen_part = stolen.split_once("::").unwrap().1;
        for text in ["", " ", "secret", "~", stolen_part, "a:b", "ü", &long] {
            let key = key(text);
            let part = key.as_str().strip_prefix("order:submit::~").unwrap();
            assert_eq!(part.len(), 64, "{text}");
            assert!(!key.as_str().contains("secret"));
        }
        assert_ne!(key(stolen_part).as_str(), stolen);
    }

    #[test]
    fn no_token_is_a_token_that_was_never_issued() {
        let none = key("order:submit", &None::<Token>);
        assert_eq!(none, key("order:submit", ""));
    }

    #[test]
    fn a_subject_is_the_same_as_text_and_as_a_number() {
        let subject = |value: &dyn Fn(&mut KeyBuilder)| {
            let mut key = KeyBuilder::new("order:submit", "");
            value(&mut key);
            super::subject(&key.finish().unwrap())
        };
        let number = subject(&|key| key.part("user.id", &7));
        assert_eq!(number, subject_of("order:submit", &"7").unwrap());
        assert_ne!(number, subject_of("order:submit", &"8").unwrap());
        assert_ne!(number, subject_of("order:cancel", &7).unwrap());
        let blank = subject_of("order:submit", &" ").unwrap_err();
        assert!(matches!(blank, Error::MissingKey { part } if part == "subject"));
    }
}
