use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Key, KeyBuilder, KeyPart, KeyWriter, Short};
use crate::Error;

fn key(parts: impl KeyPart) -> String {
    Key::new("p", parts).unwrap().as_str().to_owned()
}

fn missing(parts: impl KeyPart) -> Option<String> {
    match Key::new("p", parts) {
        Err(Error::MissingKey { part }) => Some(part.into_owned()),
        Ok(_) => None,
        Err(other) => panic!("{other:?}"),
    }
}

// K14, K06
#[test]
fn golden_vectors_never_change() {
    let golden: [(String, &str); 12] = [
        (key("A-1"), "p::A-1"),
        (
            key((1, -2_i8, u128::MAX)),
            "p::1:-2:340282366920938463463374607431768211455",
        ),
        (key((true, 'x', false)), "p::true:x:false"),
        (
            key("a:b%c{d}e~f g\u{0}\n"),
            "p::a%3Ab%25c%7Bd%7De%7Ef%20g%00%0A",
        ),
        (key("订单-é-Ж"), "p::订单-é-Ж"),
        (key("a\u{3000}b"), "p::a%E3%80%80b"),
        (key([0_u8, 255, 16]), "p::00ff10"),
        (key((1, (2, "x"), Some(3))), "p::1:2:x:3"),
        (
            key((Box::new(1), Arc::new("a"), Cow::Borrowed("b"))),
            "p::1:a:b",
        ),
        (key("#x\"y/z"), "p::#x\"y/z"),
        (
            key("x".repeat(300)),
            "p::xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx~343ac7b0236424d288ed7d4474dd60a40da24f152e3c40731270ff7c0d941c0a",
        ),
        (
            Key::new("p", 1).unwrap().hashed().as_str().to_owned(),
            "p::~17e9cb25c2bd8a42e07ed3f8f24349e0af545a21f09ae1d152862147d84908c6",
        ),
    ];
    for (made, expected) in golden {
        assert_eq!(made, expected);
    }
}

#[cfg(feature = "uuid")]
#[test]
fn a_uuid_is_written_in_its_usual_form() {
    assert_eq!(
        key(uuid::Uuid::from_u128(0x1234)),
        "p::00000000-0000-0000-0000-000000001234"
    );
}

// K02, K03
#[test]
fn a_blank_or_absent_part_is_missing_and_named_by_its_position() {
    for blank in [
        "",
        " ",
        "\t\n",
        "\u{200b}",
        "\u{feff}\u{2060}",
        "\u{0}",
        "\u{a0}",
        "\u{3164}",
    ] {
        assert_eq!(missing(blank).as_deref(), Some("0"), "{blank:?}");
        assert_eq!(missing(("x", blank)).as_deref(), Some("1"), "{blank:?}");
    }
    assert_eq!(missing((None::<u8>, Some(1))).as_deref(), Some("0"));
    assert_eq!(missing((Some(1), None::<u8>)).as_deref(), Some("1"));
    assert_eq!(missing((1, (2, None::<&str>), 3)).as_deref(), Some("2"));
    assert_eq!(missing([0_u8; 0]).as_deref(), Some("0"));
    assert_eq!(missing(("x", "y")), None);
}

#[test]
fn a_part_that_writes_nothing_is_missing() {
    struct Silent;
    impl KeyPart for Silent {
        fn write(&self, _out: &mut KeyWriter) {}
    }
    assert_eq!(missing(Silent).as_deref(), Some("0"));
    let mut key = KeyBuilder::new("p", "");
    key.part("a", &1);
    key.part("request.silent", &Silent);
    assert!(matches!(key.finish(), Err(Error::MissingKey { part }) if part == "request.silent"));
}

// K11
#[test]
fn a_prefix_outside_the_grammar_is_refused() {
    for bad in [
        "",
        ":",
        "a:",
        ":a",
        "a::b",
        "a b",
        "é",
        "a{b}",
        "a%",
        &"x".repeat(101),
    ] {
        assert!(
            matches!(Key::new(bad, 1), Err(Error::InvalidKey { .. })),
            "{bad:?}"
        );
    }
    for good in ["a", "order:pay", "A.b_c-9:x", &"x".repeat(100)] {
        assert_eq!(Key::new(good, 1).unwrap().prefix(), good);
    }
}

#[test]
fn a_template_of_a_colon_gives_the_bytes_of_the_tuple() {
    let mut template = KeyBuilder::new("p", ":");
    template.part("a", "x:y");
    template.literal(":");
    template.part("b", &7);
    assert_eq!(
        template.finish().unwrap(),
        Key::new("p", ("x:y", 7)).unwrap()
    );
}

#[test]
fn a_template_escapes_its_own_punctuation_inside_parts() {
    let mut template = KeyBuilder::new("p", "-/é");
    template.literal("user-");
    template.part("a", "x-y");
    template.literal("/");
    template.part("b", &-7);
    assert_eq!(template.finish().unwrap().as_str(), "p::user-x%2Dy/%2D7");
}

#[test]
fn a_long_key_is_cut_at_a_character_boundary_and_keeps_its_hash() {
    let long = Key::new("p", "é".repeat(200)).unwrap();
    assert!(long.as_str().len() <= 200);
    assert_eq!(&long.as_str()[127..128], "~");
    assert_ne!(long, Key::new("p", "é".repeat(201)).unwrap());
    let exact = Key::new("p", "x".repeat(197)).unwrap();
    assert_eq!(exact.as_str().len(), 200);
    assert!(!exact.as_str().contains('~'));
    assert!(
        Key::new("p", "x".repeat(198))
            .unwrap()
            .as_str()
            .contains('~')
    );
}

#[test]
fn what_is_printed_can_be_parsed() {
    for parts in ["a", "a b", "~", "é%", &"long ".repeat(100)] {
        let key = Key::new("order:pay", (parts, 1)).unwrap();
        for key in [key.clone(), key.hashed()] {
            let again = Key::parse(key.as_str()).unwrap();
            assert_eq!(again, key);
            assert_eq!(again.prefix(), "order:pay");
            assert_eq!(again.hashed(), key.hashed());
        }
    }
    for bad in [
        "", "p", "p::", "p:a", "::a", "p::a b", "p::a\n", "p::%zz", "p::%2", "p::a~b", "p::%2a",
    ] {
        assert!(Key::parse(bad).is_err(), "{bad:?}");
    }
    assert!(Key::parse(&format!("p::{}", "x".repeat(197))).is_ok());
    assert!(Key::parse(&format!("p::{}", "x".repeat(198))).is_err());
}

#[test]
fn a_key_in_a_log_is_its_prefix_and_a_hash() {
    let short = |parts| {
        let key = Key::new("order:pay", parts).unwrap();
        Short::of(key.as_str(), key.prefix()).to_string()
    };
    let (one, other) = (short("A-1"), short("A-2"));
    assert_eq!(one, short("A-1"));
    assert_ne!(one, other);
    for shown in [one, other] {
        let hash = shown.strip_prefix("order:pay::#").unwrap();
        assert!(hash.len() == 12 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}

#[test]
fn hashing_twice_changes_nothing() {
    let hashed = Key::new("p", ("a", 1)).unwrap().hashed();
    assert_eq!(hashed.hashed(), hashed);
    assert_eq!(hashed.as_str().len(), "p::~".len() + 64);
}

#[test]
fn the_lock_of_a_key_has_a_key_of_its_own() {
    let key = Key::new("order:pay", "A-1").unwrap();
    let lock = key.of_lock();
    assert_eq!(lock.as_str(), "~lock:order:pay::A-1");
    assert_eq!(lock.prefix(), "~lock:order:pay");
    assert_eq!(lock.of_lock(), lock);
    assert_eq!(Key::parse(lock.as_str()).unwrap(), lock);
    assert_eq!((key.is_lock(), lock.is_lock()), (false, true));
}

#[test]
fn a_key_is_shown_as_its_text() {
    let key = Key::new("order:pay", "A 1").unwrap();
    assert_eq!(key.to_string(), "order:pay::A%201");
    assert_eq!(AsRef::<str>::as_ref(&key), "order:pay::A%201");
    assert_eq!(format!("{key:?}"), "Key(\"order:pay::A%201\")");
}

#[test]
fn keys_work_in_maps() {
    let mut seen = HashMap::new();
    seen.insert(Key::new("p", 1).unwrap(), "one");
    assert_eq!(seen.get(&Key::new("p", 1_u8).unwrap()), Some(&"one"));
}

fn unescape(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn tricky() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c:%{}~ \u{0}\u{7f}\\-/]{1,6}", ".{1,40}", "[a-c]{1,3}"]
}

fn template(
    literals: [&'static str; 3],
    punctuation: &'static str,
    parts: [&str; 2],
) -> Option<Key> {
    let mut key = KeyBuilder::new("p", punctuation);
    key.literal(literals[0]);
    key.part("a", parts[0]);
    key.literal(literals[1]);
    key.part("b", parts[1]);
    key.literal(literals[2]);
    key.finish().ok()
}

proptest! {
    // K09
    #[test]
    fn different_parts_never_share_a_key(a in tricky(), b in tricky(), c in tricky(), d in tricky()) {
        let (one, other) = (Key::new("p", (&a, &b)), Key::new("p", (&c, &d)));
        if let (Ok(one), Ok(other)) = (one, other) {
            prop_assert_eq!((&a, &b) == (&c, &d), one == other);
        }
    }

    #[test]
    fn different_parts_of_a_template_never_share_a_key(a in tricky(), b in tricky(), c in tricky(), d in tricky()) {
        for (literals, punctuation) in [(["u-", "a-b", ""], "-"), (["", "/", "x"], "/"), (["{", "c:c", "}"], "{}:")] {
            let (one, other) = (template(literals, punctuation, [&a, &b]), template(literals, punctuation, [&c, &d]));
            if let (Some(one), Some(other)) = (one, other) {
                prop_assert_eq!((&a, &b) == (&c, &d), one == other);
            }
        }
    }

    #[test]
    fn parts_can_be_read_back_from_a_short_key(a in tricky(), b in tricky()) {
        if let Ok(key) = Key::new("p", (&a, &b)) && !key.parts().contains('~') {
            let (first, second) = key.parts().split_once(':').unwrap();
            prop_assert_eq!((unescape(first), unescape(second)), (a, b));
        }
    }

    #[test]
    fn a_key_is_at_most_200_bytes_and_parses(parts in ".{0,400}") {
        if let Ok(key) = Key::new("p", parts) {
            prop_assert!(key.as_str().len() <= 200);
            prop_assert_eq!(Key::parse(key.as_str()).unwrap(), key);
        }
    }
}
