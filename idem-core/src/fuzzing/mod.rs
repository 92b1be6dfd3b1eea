//! What a fuzzer runs: for records, replies, rows, keys, tokens and fingerprints, the property that
//! their reader or maker keeps whatever it is given.
//!
//! A property is a function of some bytes that panics where it does not hold. The targets in
//! `fuzz/` hand them to libFuzzer; [`Campaign`] runs the same ones for a fixed number of inputs, made
//! from the same corpus, on any compiler.
//!
//! Each property is written against a reader that it is given, so that its tests can give it one
//! with a mistake.

mod campaign;
mod fingerprint;
mod key;
mod key_text;
pub(crate) mod record;
#[cfg(test)]
pub(crate) mod tests;
mod token;

pub use self::campaign::Campaign;
#[cfg(feature = "redis")]
use crate::store::redis::fuzzing as reply;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use crate::store::sql::row::fuzzing as row;

/// A property by the name of its target, which is also that of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All properties of this crate.
pub const TARGETS: &[Target] = &[
    ("record", record),
    ("key", key),
    ("key_text", key_text),
    ("token", token),
    ("fingerprint", fingerprint),
    #[cfg(feature = "redis")]
    ("reply", reply),
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    ("row", row),
];

/// Bytes that are read as a record are those that the record is written as.
///
/// # Panics
/// If they are not.
pub fn record(bytes: &[u8]) {
    record::check(record::OURS, bytes);
}

/// Bytes that are read as the reply of a script have one meaning, and only the verbs that have this
/// meaning take it.
///
/// # Panics
/// If that is not so.
#[cfg(feature = "redis")]
pub fn reply(bytes: &[u8]) {
    reply::check(bytes);
}

/// A row is read as the record that it was made of; one that somebody has changed is none, but for
/// two columns that say something by themselves: another end, unless it is that of a closed mark,
/// and other bytes for the result or error that it holds.
///
/// The bytes are a column, eight bytes to change it with, and a record.
///
/// # Panics
/// If that is not so.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub fn row(bytes: &[u8]) {
    row::check(row::OURS, bytes);
}

/// Two requests have one key if their parts are the same, and only then; the parts can be read in
/// it, and it is read back from its text.
///
/// The bytes are text, in lines: the two parts of one request, and the two of another.
///
/// # Panics
/// If that is not so.
pub fn key(bytes: &[u8]) {
    key::check(key::OURS, bytes);
}

/// A text that is read as a key is the text of that key, and one that can be printed and stored.
///
/// # Panics
/// If it is not.
pub fn key_text(bytes: &[u8]) {
    key_text::check(key_text::OURS, bytes);
}

/// Any text is a token, kept under a key that is its own and does not show it.
///
/// The bytes are text, in lines: two tokens.
///
/// # Panics
/// If that is not so.
pub fn token(bytes: &[u8]) {
    token::check(token::OURS, bytes);
}

/// Two payloads have one fingerprint if they have the same content, in whatever order of their
/// fields, and only then.
///
/// The bytes are two payloads as JSON, in lines.
///
/// # Panics
/// If that is not so.
pub fn fingerprint(bytes: &[u8]) {
    fingerprint::check::<fingerprint::Ours>(bytes);
}

/// The first `N` lines of what is text in `bytes`; the last of them is all that follows.
fn lines<const N: usize>(bytes: &[u8]) -> [String; N] {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.splitn(N, '\n');
    std::array::from_fn(|_| lines.next().unwrap_or_default().to_owned())
}
