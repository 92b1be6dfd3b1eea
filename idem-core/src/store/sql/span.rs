//! Which rows a scan reads next: all keys that begin with a text, in the order of the index on
//! `(business_type, business_key)`.

use crate::error::{StoreError, StoreErrorKind};
use crate::store::{Cursor, Scan};

/// From `begin` on, which itself is only meant where `is_first`, up to `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) begin: (String, String),
    pub(super) is_first: bool,
    pub(super) end: (String, String),
    pub(super) rows: i64,
}

/// What parts `business_type` from `business_key` in a key text.
const PARTS: &str = "::";

impl Span {
    /// Rows outside the prefix may lie in the span; none with the prefix lies outside it.
    pub(super) fn of(scan: &Scan) -> Result<Self, StoreError> {
        let (mut begin, end) = if let Some((kind, parts)) = scan.prefix.split_once(PARTS) {
            let end = match after_all_with(parts) {
                Some(end) => (kind.to_owned(), end),
                None => (after(kind), String::new()),
            };
            ((kind.to_owned(), parts.to_owned()), end)
        } else {
            // `shop:order:` begins the keys of `shop:order:pay` and of `shop:order` itself.
            let kind = scan.prefix.strip_suffix(':').unwrap_or(&scan.prefix);
            let end = (after(kind), String::new());
            ((kind.to_owned(), String::new()), end)
        };
        if let Some(cursor) = &scan.cursor {
            begin = read(cursor)?;
        }
        Ok(Self {
            begin,
            is_first: scan.cursor.is_none(),
            end,
            rows: scan.page_size.max(1).into(),
        })
    }
}

/// The whole key text of a row.
pub(super) fn text(business_type: &str, business_key: &str) -> String {
    format!("{business_type}{PARTS}{business_key}")
}

/// Behind a row.
pub(super) fn cursor(business_type: &str, business_key: &str) -> Cursor {
    Cursor(text(business_type, business_key))
}

fn read(cursor: &Cursor) -> Result<(String, String), StoreError> {
    let (kind, parts) = cursor.0.split_once(PARTS).ok_or_else(|| {
        let detail = format!(
            "{:?} is no cursor of an SQL store; begin the scan without one",
            cursor.0
        );
        StoreError::new(StoreErrorKind::Protocol, detail)
    })?;
    Ok((kind.to_owned(), parts.to_owned()))
}

/// The first text behind all that begin with `prefix`, where there is one.
fn after_all_with(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

/// A text behind all business types that begin with `kind`: these are ASCII.
fn after(kind: &str) -> String {
    after_all_with(kind).unwrap_or_else(|| char::MAX.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(prefix: &str) -> Span {
        let scan = Scan {
            prefix: prefix.to_owned(),
            cursor: None,
            page_size: 0,
        };
        Span::of(&scan).unwrap()
    }

    fn holds(span: &Span, kind: &str, parts: &str) -> bool {
        let place = (kind.to_owned(), parts.to_owned());
        span.begin <= place && place < span.end
    }

    #[test]
    fn every_key_with_the_prefix_lies_in_the_span() {
        let keys = [
            ("shop:order", "1"),
            ("shop:order", "ä:2"),
            ("shop:order:pay", "1"),
            ("shop:order-old", "\u{10FFFF}"),
        ];
        for (kind, parts) in keys {
            let text = text(kind, parts);
            let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            ends.push(text.len());
            for end in ends {
                assert!(holds(&span(&text[..end]), kind, parts), "{}", &text[..end]);
            }
        }
    }

    #[test]
    fn a_prefix_that_names_the_type_reads_no_other_type() {
        let span = span("shop:order::A");
        assert!(!holds(&span, "shop:order", "B"));
        assert!(!holds(&span, "shop:order:pay", "A"));
        assert_eq!(span.rows, 1);
    }

    #[test]
    fn the_end_of_texts_skips_what_is_no_char() {
        assert_eq!(after_all_with("a\u{D7FF}"), Some("a\u{E000}".to_owned()));
        assert_eq!(after_all_with("a\u{10FFFF}"), Some("b".to_owned()));
        assert_eq!(after_all_with("\u{10FFFF}"), None);
    }

    #[test]
    fn a_text_that_is_no_cursor_is_refused() {
        let scan = Scan {
            prefix: "shop:".into(),
            cursor: Some(Cursor("7".into())),
            page_size: 10,
        };
        assert_eq!(
            Span::of(&scan).unwrap_err().kind(),
            StoreErrorKind::Protocol
        );
    }
}
