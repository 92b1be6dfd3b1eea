//! Fingerprints: equal for equal content, and only for it.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::fingerprint::Fingerprint;

/// A way to take fingerprints.
pub(super) trait Print {
    fn of<P: Serialize>(payload: &P) -> Option<Vec<u8>>;
}

pub(super) struct Ours;

impl Print for Ours {
    fn of<P: Serialize>(payload: &P) -> Option<Vec<u8>> {
        Some(Fingerprint::of(payload).ok()?.as_bytes().to_vec())
    }
}

pub(super) fn check<P: Print>(bytes: &[u8]) {
    let texts: [String; 2] = super::lines(bytes);
    let [one, other] = texts.map(|text| serde_json::from_str::<Value>(&text).ok());
    for payload in one.iter().chain(&other) {
        let print = P::of(payload);
        assert!(print.is_some(), "no fingerprint of {payload}");
        assert_eq!(print, P::of(&Backwards(payload)), "the order of {payload}");
        let is_something = !payload.is_null();
        let optional = P::of(&Some(payload));
        assert_eq!(print == optional, is_something, "an option of {payload}");
    }
    if let (Some(one), Some(other)) = (one, other) {
        let same = text(&one) == text(&other);
        let shared = P::of(&one) == P::of(&other);
        assert_eq!(same, shared, "shared or not: {one} and {other}");
    }
}

/// What is equal here is equal: `Value` takes 0.0 for -0.0.
fn text(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

/// The same, with the entries of each map in the other order.
struct Backwards<'a>(&'a Value);

impl Serialize for Backwards<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(Backwards)),
            Value::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (name, value) in entries.iter().rev() {
                    map.serialize_entry(name, &Backwards(value))?;
                }
                map.end()
            }
            scalar => scalar.serialize(serializer),
        }
    }
}
