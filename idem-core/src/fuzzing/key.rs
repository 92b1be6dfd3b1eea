//! Keys: different parts, different text.

use crate::key::{Key, KeyBuilder};

/// A template of two parts: what stands before, between and behind them, and which characters of it
/// are punctuation.
pub(super) struct Template {
    pub(super) literals: [&'static str; 3],
    pub(super) punctuation: &'static str,
}

const TEMPLATES: [Template; 4] = [
    Template {
        literals: ["", ":", ""],
        punctuation: ":",
    },
    Template {
        literals: ["u-", "a-b", ""],
        punctuation: "-",
    },
    Template {
        literals: ["", "/", "x"],
        punctuation: "/",
    },
    Template {
        literals: ["{", "c:c", "}"],
        punctuation: "{}:",
    },
];

const PREFIX: &str = "order:pay";

/// Gives two parts a key, if none of them is missing.
pub(super) type Build = fn(&Template, [&str; 2]) -> Option<String>;

pub(super) const OURS: Build = |template, parts| {
    let mut key = KeyBuilder::new(PREFIX, template.punctuation);
    key.literal(template.literals[0]);
    key.part("first", parts[0]);
    key.literal(template.literals[1]);
    key.part("second", parts[1]);
    key.literal(template.literals[2]);
    key.finish().ok().map(|key| key.as_str().to_owned())
};

pub(super) fn check(build: Build, bytes: &[u8]) {
    let lines: [String; 4] = super::lines(bytes);
    let [a, b, c, d] = lines.each_ref().map(String::as_str);
    for template in &TEMPLATES {
        let (one, other) = (build(template, [a, b]), build(template, [c, d]));
        for (parts, key) in [([a, b], &one), ([c, d], &other)] {
            if let Some(key) = key {
                check_text(template, parts, key);
            }
        }
        if let (Some(one), Some(other)) = (one, other) {
            let same = [a, b] == [c, d];
            assert_eq!(same, one == other, "shared or not: {one} and {other}");
        }
    }
    check_tuple(build, [a, b]);
}

/// A key is short, can be read back, and shows its parts unless it was too long.
fn check_text(template: &Template, parts: [&str; 2], text: &str) {
    assert!(text.len() <= 200, "{text} is too long");
    let Ok(key) = Key::parse(text) else {
        panic!("{text} can not be read back");
    };
    assert_eq!(key.prefix(), PREFIX, "{text} has another prefix");
    if !text.contains('~') {
        let parts = Some(parts.map(str::to_owned));
        assert_eq!(read_parts(template, text), parts, "{text} shows others");
    }
}

/// What stands between the literals, without escapes.
fn read_parts(template: &Template, text: &str) -> Option<[String; 2]> {
    let [before, between, behind] = template.literals;
    let rest = text.strip_prefix(PREFIX)?.strip_prefix("::")?;
    let rest = rest.strip_prefix(before)?.strip_suffix(behind)?;
    let (first, second) = rest.split_once(between)?;
    Some([unescape(first)?, unescape(second)?])
}

fn unescape(part: &str) -> Option<String> {
    let mut pieces = part.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// A template with a colon gives the key of the tuple.
fn check_tuple(build: Build, parts: [&str; 2]) {
    let tuple = Key::new(PREFIX, (parts[0], parts[1])).ok();
    let tuple = tuple.map(|key| key.as_str().to_owned());
    assert_eq!(build(&TEMPLATES[0], parts), tuple, "not as a tuple");
}
