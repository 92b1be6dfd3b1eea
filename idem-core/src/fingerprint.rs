//! The fingerprint: a short hash of a payload, to refuse one key with two payloads.

mod canonical;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

use crate::Error;

/// 16 bytes that are equal for equal payloads, in every process and every later version of this
/// crate, and different for different ones.
///
/// It is the beginning of the BLAKE3 hash of a canonical form of what the payload serialises:
/// - maps and structs are sorted by key, so the order of fields or of a `HashMap` does not matter,
///   and a struct equals the map with the same content;
/// - a `HashSet` is sorted too, also behind references, boxes and options. It is known by its type
///   name: where `#[serde(transparent)]` or `serialize_with` hides it, use a `BTreeSet`;
/// - integers of equal value are equal in every width; floats are taken by their bits (`NaN` too);
/// - every other sequence keeps its order.
///
/// # Examples
/// ```
/// use idem_core::Fingerprint;
/// use std::collections::HashMap;
///
/// let one = HashMap::from([("amount", 5), ("shop", 7)]);
/// let other = HashMap::from([("shop", 7), ("amount", 5)]);
/// assert_eq!(Fingerprint::of(&one)?, Fingerprint::of(&other)?);
/// # Ok::<(), idem_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// The fingerprint of a payload. Memory: the size of its serialised form.
    ///
    /// # Errors
    /// `InvalidKey` when the payload's own `Serialize` fails.
    pub fn of<P: Serialize + ?Sized>(payload: &P) -> Result<Self, Error> {
        let bytes = canonical::encode(payload).map_err(|error| Error::InvalidKey {
            reason: format!("the fingerprint can not be taken: {error}").into(),
        })?;
        let mut short = [0; 16];
        blake3::Hasher::new()
            .update(&bytes)
            .finalize_xof()
            .fill(&mut short);
        Ok(Self(short))
    }

    /// The bytes, as a record keeps them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// A fingerprint read back from a record.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({:032x})", u128::from_be_bytes(self.0))
    }
}
