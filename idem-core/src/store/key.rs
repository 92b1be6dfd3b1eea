//! Where a store keeps a record: the key's text behind its namespace.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::key::Key;

/// The full text under which a store keeps a record: `namespace:prefix::part[:part…]`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StoreKey {
    /// Shared with the memory store, which keeps it as it is.
    pub(super) text: Arc<str>,
    prefix: (u16, u16),
}

impl StoreKey {
    /// The address of `key` in `namespace`.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] if the namespace is empty, longer than 64 bytes, or holds anything
    /// but ASCII letters, digits, `_`, `.` and `-`.
    pub fn new(namespace: &str, key: &Key) -> Result<Self, Error> {
        check_namespace(namespace)?;
        Ok(Self::within(namespace, key))
    }

    /// The address in a namespace that was checked before.
    pub(crate) fn within(namespace: &str, key: &Key) -> Self {
        let mut text = String::with_capacity(namespace.len() + 1 + key.as_str().len());
        text.push_str(namespace);
        text.push(':');
        text.push_str(key.as_str());
        let begin = namespace.len() + 1;
        let bound = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        Self {
            text: text.into(),
            prefix: (bound(begin), bound(begin + key.prefix().len())),
        }
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the first colon.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.text[..usize::from(self.prefix.0) - 1]
    }

    /// The business type, without the namespace.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.text[usize::from(self.prefix.0)..usize::from(self.prefix.1)]
    }

    /// The parts, as written behind the two colons.
    #[must_use]
    pub fn parts(&self) -> &str {
        &self.text[usize::from(self.prefix.1) + 2..]
    }
}

impl fmt::Debug for StoreKey {
    /// Names a key by its prefix and a short hash, as logs do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = blake3::hash(self.text.as_bytes()).to_hex();
        write!(f, "StoreKey({}::#{})", self.prefix(), &hash[..12])
    }
}

pub(crate) fn check_namespace(namespace: &str) -> Result<(), Error> {
    const LONGEST: usize = 64;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if namespace.is_empty() || namespace.len() > LONGEST || !namespace.bytes().all(is_allowed) {
        return Err(Error::InvalidKey {
            reason: format!(
                "namespace {namespace:?} must be 1 to {LONGEST} of the ASCII letters, digits, `_`, `.` and `-`"
            )
            .into(),
        });
    }
    Ok(())
}
