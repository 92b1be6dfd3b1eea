//! Tokens: whatever text is presented.

use crate::token::{self, Token};

/// The key of the token with this text.
pub(super) type KeyOf = fn(&str) -> String;

pub(super) const OURS: KeyOf = |text| token::key(PREFIX, text).as_str().to_owned();

const PREFIX: &str = "order:submit";

pub(super) fn check(key: KeyOf, bytes: &[u8]) {
    let [one, other]: [String; 2] = super::lines(bytes);
    let keys = [&one, &other].map(|text| {
        check_text(text);
        let key = key(text);
        check_key(text, &key);
        key
    });
    let same = one == other;
    assert_eq!(same, keys[0] == keys[1], "shared or not: {keys:?}");
}

/// A token is its text, and shows it to nobody but who asks for it.
fn check_text(text: &str) {
    let token = Token::from(text);
    assert_eq!(token.as_str(), text);
    assert_eq!(format!("{token:?}"), "Token(…)");
    let sent = serde_json::to_string(&token).ok();
    let read = sent.and_then(|sent| serde_json::from_str::<Token>(&sent).ok());
    assert_eq!(read, Some(token), "lost on its way");
}

/// The key is a hash and nothing else: not the text itself, also where that looks like one.
fn check_key(text: &str, key: &str) {
    let hash = key
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_prefix("::~"))
        .unwrap_or_default();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    assert!(
        hash.len() == 64 && hash.bytes().all(is_hex),
        "{key} is no hash"
    );
    assert_ne!(
        hash,
        text.trim_start_matches('~'),
        "a hash was taken as it is"
    );
}
