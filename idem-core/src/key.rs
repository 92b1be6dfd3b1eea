//! Keys (placeholder until the key language lands).

use std::fmt;
use std::sync::Arc;

/// A key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    text: Arc<str>,
    prefix_len: usize,
}

impl Key {
    /// The text, without a namespace.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.text[..self.prefix_len]
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
