//! The key: which business request a call belongs to, as text.
//!
//! A key reads `prefix::part` or `prefix::part:part`; the engine puts its `namespace:` before it.
//! Two requests with different parts never get the same text, and one prefix with the same parts
//! gives the same bytes in every process and every later version of this crate.

mod part;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use part::KeyPart;
#[doc(hidden)]
pub use text::KeyBuilder;
pub use text::KeyWriter;
pub(crate) use text::{is_blank, push_hex};

use crate::Error;

/// A longer prefix would leave too little of the parts readable in a shortened key.
const MAX_PREFIX_BYTES: usize = 100;
const MAX_KEY_BYTES: usize = 200;
const READABLE_BYTES: usize = 128;
const HASH_HEX_BYTES: usize = 64;
const DIVIDER: &str = "::";
/// Before the prefix in the key of a lock's record. No prefix holds a `~`.
const LOCK_SEGMENT: &str = "~lock:";

/// The name of one business request: `prefix::part[:part…]`, at most 200 bytes.
///
/// In parts `%`, `:`, `{`, `}`, `~`, white space and controls are written `%XX` for each UTF-8
/// byte; everything else, letters of any script included, stays readable. A text over 200 bytes
/// becomes its first 128 bytes (at a character boundary), `~` and the hexadecimal SHA-256 of the
/// whole.
///
/// Cloning is cheap: clones share the text.
///
/// # Examples
/// ```
/// use idem_core::Key;
///
/// let key = Key::new("order:pay", (17, "A:1"))?;
/// assert_eq!(key.as_str(), "order:pay::17:A%3A1");
/// assert_eq!(key.prefix(), "order:pay");
/// # Ok::<(), idem_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    text: Arc<str>,
    prefix: usize,
}

impl Key {
    /// The key that `#[idempotent(prefix = …, key = …)]` gives to the same values: of a path, of an
    /// expression, and of a template that has nothing but one `:` between its placeholders, which is
    /// the tuple of their values.
    ///
    /// Any other literal of a template is escaped inside the values as well: `"{xid}-{branch}"` writes
    /// the `-` of a UUID as `%2D`. Such a key can not be made here, also not by a text with the same
    /// literals; it can be [parsed](Self::parse) as [`records`](crate::Idempotency::records) show it.
    /// So where a program has to name a key, to [refuse](crate::Idempotency::refuse),
    /// [resolve](crate::Idempotency::resolve) or [lock](crate::Idempotency::lock) it, write a tuple.
    ///
    /// `prefix` is non-empty segments of `[A-Za-z0-9_.-]` joined by `:`, at most 100 bytes. A
    /// tuple is one part for each element.
    ///
    /// # Errors
    /// `InvalidKey` for a bad prefix; `MissingKey`, naming the position from 0, for a part that is
    /// `None`, empty or blank.
    pub fn new(prefix: &str, parts: impl KeyPart) -> Result<Self, Error> {
        check_prefix(prefix)?;
        let mut key = KeyBuilder::new(prefix, "");
        key.positional(&parts);
        key.finish()
    }

    /// Reads the text of a key back, as tools print it (without the namespace).
    ///
    /// # Errors
    /// `InvalidKey` for a text that [`as_str`](Self::as_str) can not have given.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let request = text.strip_prefix(LOCK_SEGMENT).unwrap_or(text);
        let (prefix, parts) = request
            .split_once(DIVIDER)
            .ok_or_else(|| invalid("a key reads `prefix::part`; there is no `::` in this text"))?;
        check_prefix(prefix)?;
        check_parts(parts)?;
        if request.len() > MAX_KEY_BYTES {
            return Err(invalid("a key has at most 200 bytes"));
        }
        Ok(Self {
            text: text.into(),
            prefix: text.len() - request.len() + prefix.len(),
        })
    }

    /// The key of a secret: `prefix::~` and the hexadecimal SHA-256 of `prefix::secret`. Unlike
    /// [`hashed`](Self::hashed) it takes no text for a hash, or who reads the store could present
    /// what it holds. The prefix is taken as checked.
    pub(crate) fn hiding(prefix: &str, secret: &str) -> Self {
        let whole = [prefix, DIVIDER, secret].concat();
        Self::of_hash(prefix, &whole)
    }

    /// The key under which the store keeps the [lock](crate::Idempotency::lock) on this key, to
    /// [`peek`](crate::Idempotency::peek) at it or to end it: `~lock:prefix::part[:part…]`. No
    /// request has it, since no prefix holds a `~`.
    ///
    /// # Examples
    /// ```
    /// let key = idem_core::Key::new("order:pay", "A-1")?;
    /// assert_eq!(key.of_lock().as_str(), "~lock:order:pay::A-1");
    /// # Ok::<(), idem_core::Error>(())
    /// ```
    #[must_use]
    pub fn of_lock(&self) -> Self {
        if self.is_lock() {
            return self.clone();
        }
        Self {
            text: [LOCK_SEGMENT, &self.text].concat().into(),
            prefix: LOCK_SEGMENT.len() + self.prefix,
        }
    }

    /// What names it where its parts are nobody's business.
    pub(crate) fn short(&self) -> Short<'_> {
        Short::of(&self.text, self.prefix())
    }

    pub(crate) fn is_lock(&self) -> bool {
        self.text.starts_with(LOCK_SEGMENT)
    }

    /// The text, `prefix::part[:part…]`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What stands before the two colons: the business type.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.text[..self.prefix]
    }

    /// The same key with unreadable parts: `prefix::~` and the hexadecimal SHA-256 of the text.
    /// A key that is hashed already stays as it is.
    #[must_use]
    pub fn hashed(&self) -> Self {
        if self.parts().starts_with('~') {
            return self.clone();
        }
        Self::of_hash(self.prefix(), &self.text)
    }

    fn of_hash(prefix: &str, whole: &str) -> Self {
        let mut text = String::with_capacity(prefix.len() + DIVIDER.len() + 1 + HASH_HEX_BYTES);
        text.push_str(prefix);
        text.push_str(DIVIDER);
        text.push('~');
        push_sha256(&mut text, whole);
        Self {
            text: text.into(),
            prefix: prefix.len(),
        }
    }

    fn parts(&self) -> &str {
        &self.text[self.prefix + DIVIDER.len()..]
    }

    fn from_text(mut text: String, prefix: usize) -> Self {
        if text.len() > MAX_KEY_BYTES {
            shorten(&mut text);
        }
        Self {
            text: text.into(),
            prefix,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&&*self.text).finish()
    }
}

/// A key in logs and errors: its prefix and a short hash, the same wherever it is named.
pub(crate) struct Short<'a> {
    text: &'a str,
    prefix: &'a str,
}

impl<'a> Short<'a> {
    /// Of the text of a key, without the namespace.
    pub(crate) fn of(text: &'a str, prefix: &'a str) -> Self {
        Self { text, prefix }
    }
}

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = blake3::hash(self.text.as_bytes()).to_hex();
        write!(f, "{}::#{}", self.prefix, &hash[..12])
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

fn shorten(text: &mut String) {
    let whole = std::mem::take(text);
    text.reserve_exact(READABLE_BYTES + 1 + HASH_HEX_BYTES);
    text.push_str(&whole[..whole.floor_char_boundary(READABLE_BYTES)]);
    text.push('~');
    push_sha256(text, &whole);
}

fn push_sha256(text: &mut String, of: &str) {
    push_hex(text, &Sha256::digest(of.as_bytes()));
}

pub(crate) fn check_prefix(prefix: &str) -> Result<(), Error> {
    let segment = |segment: &str| {
        !segment.is_empty()
            && segment
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    if prefix.len() > MAX_PREFIX_BYTES {
        return Err(invalid("a prefix has at most 100 bytes"));
    }
    if !prefix.split(':').all(segment) {
        return Err(invalid(
            "a prefix is non-empty segments of letters, digits, `_`, `.`, `-`, joined by `:`",
        ));
    }
    Ok(())
}

fn check_parts(parts: &str) -> Result<(), Error> {
    if parts.is_empty() {
        return Err(invalid("nothing follows the `::`"));
    }
    if parts.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(invalid(
            "white space and controls are written `%XX` in a key",
        ));
    }
    match parts.split_once('~') {
        Some((_, hash)) if !is_hash(hash) => Err(invalid(
            "`~` stands only before the 64 hexadecimal digits of a shortened key",
        )),
        Some(_) => Ok(()),
        None => check_escapes(parts),
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_HEX_BYTES
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn check_escapes(parts: &str) -> Result<(), Error> {
    let escape = |rest: &str| {
        rest.as_bytes().get(..2).is_some_and(|hex| {
            hex.iter()
                .all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte))
        })
    };
    if parts.split('%').skip(1).all(escape) {
        Ok(())
    } else {
        Err(invalid(
            "`%` is followed by two upper-case hexadecimal digits in a key",
        ))
    }
}

fn invalid(reason: &'static str) -> Error {
    Error::InvalidKey {
        reason: Cow::Borrowed(reason),
    }
}
