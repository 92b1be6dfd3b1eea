//! What a refusal is about.

use std::fmt;

use crate::key::Key;

/// Which guarded call an [`Error`](super::Error) is about.
#[derive(Clone, PartialEq, Eq)]
pub struct Context {
    pub(super) key: Key,
    pub(super) message: Option<&'static str>,
    /// Whether the next call asks a `recover` that could not tell.
    pub(super) asks_again: bool,
}

impl Context {
    pub(crate) fn new(key: Key, message: Option<&'static str>) -> Self {
        Self {
            key,
            message,
            asks_again: false,
        }
    }

    /// Of a call whose `recover` could not tell.
    pub(crate) fn asked_again(mut self) -> Self {
        self.asks_again = true;
        self
    }

    /// The key of the call, in plain text: for programs and operators, not for logs.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.short().fmt(f)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({self})")
    }
}
