//! Bytes in the text of a statement and of what it answers. In hexadecimal, with a function of the
//! database where it has no literal for that: how a text shows bytes, and whether a backslash in it
//! escapes, is up to the session.

use std::fmt::Write;

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string can not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(feature = "postgres")]
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks() else {
        return None;
    };
    let digit = |character: u8| char::from(character).to_digit(16);
    let byte = |&[high, low]: &[u8; 2]| u8::try_from(digit(high)? * 16 + digit(low)?).ok();
    pairs.iter().map(byte).collect()
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_what_they_were() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(unhex(&hex(&all)), Some(all));
        assert_eq!(hex(b"\\x"), "5c78");
        for wrong in ["5", "+5", "5g", "\\x5c", "é"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
