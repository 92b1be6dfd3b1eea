//! The text of a key, as somebody types it.

use crate::key::Key;
use crate::store::StoreKey;

/// Reads the text of a key.
pub(super) type Parse = fn(&str) -> Option<Key>;

pub(super) const OURS: Parse = |text| Key::parse(text).ok();

const LOCK: &str = "~lock:";
const HASH: usize = 64;

pub(super) fn check(parse: Parse, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Some(key) = parse(&text) else { return };
    assert_eq!(
        key.as_str(),
        text,
        "another text than the one that was read"
    );
    for key in [key.hashed(), key.of_lock(), key.of_lock().of_lock()] {
        assert_eq!(parse(key.as_str()), Some(key), "can not be read back");
    }
    assert_eq!(key.hashed().hashed(), key.hashed(), "hashed twice");
    check_stored(&key);
    check_parts(&text);
}

/// A store takes the text apart, and has the same again.
fn check_stored(key: &Key) {
    let Ok(stored) = StoreKey::new("shop", key) else {
        panic!("{key} has no place in a store");
    };
    let (namespace, prefix, parts) = (stored.namespace(), stored.prefix(), stored.parts());
    assert_eq!(stored.as_str(), format!("shop:{key}"));
    assert_eq!(stored.as_str(), format!("{namespace}:{prefix}::{parts}"));
    assert_eq!(prefix, key.prefix());
}

/// Whatever the grammar takes: a key is a line of visible characters with whole escapes, and a `~`
/// marks a hash.
fn check_parts(text: &str) {
    let request = text.strip_prefix(LOCK).unwrap_or(text);
    assert!(request.len() <= 200, "too long");
    let bad = |c: char| c.is_whitespace() || c.is_control();
    assert!(!text.contains(bad), "white space or a control");
    let readable = match request.find('~') {
        Some(at) => {
            assert_eq!(request.len() - at, 1 + HASH, "half a hash");
            // A shortened key may be cut within an escape.
            return;
        }
        None => request,
    };
    for (at, _) in readable.match_indices('%') {
        let code = readable.get(at + 1..at + 3).unwrap_or_default();
        let byte = u8::from_str_radix(code, 16).ok();
        let again = byte.map(|byte| format!("{byte:02X}"));
        assert_eq!(again.as_deref(), Some(code), "half an escape");
    }
}
