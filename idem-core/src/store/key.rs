//! Where a store keeps a record: the key's text behind its namespace.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::key::{Key, Short};

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
    /// Names a key by its prefix and a short hash, as logs and errors do; the namespace, which an
    /// error does not know, has no part in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.text[usize::from(self.prefix.0)..];
        write!(f, "StoreKey({})", Short::of(key, self.prefix()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Context;

    #[test]
    fn a_log_names_a_key_as_an_error_does() {
        for key in [
            Key::new("order:pay", "A-1").unwrap(),
            Key::new("order:pay", "A-1").unwrap().of_lock(),
        ] {
            let logged = format!("{:?}", StoreKey::new("shop", &key).unwrap());
            let told = Context::new(key, None).to_string();
            assert_eq!(logged, format!("StoreKey({told})"));
            assert!(!logged.contains("A-1"), "{logged}");
        }
    }
}
