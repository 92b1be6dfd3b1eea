//! From values to the key's text: joining, escaping, and noticing what is missing.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use super::{DIVIDER, Key, KeyPart};
use crate::Error;

/// Room for the parts of a usual key, so that its text is allocated once.
const USUAL_PARTS: usize = 64;

/// Where a [`KeyPart`] writes its text.
///
/// Each call of [`text`](Self::text) or [`display`](Self::display) adds one part; the writer puts
/// `:` between parts and escapes what a part must not hold.
#[derive(Debug)]
pub struct KeyWriter {
    text: String,
    /// What a template uses as literals, to be escaped inside parts as well.
    punctuation: &'static str,
    after_part: bool,
    parts: usize,
    missing: Option<usize>,
}

impl KeyWriter {
    /// Adds one part. A blank text (empty, or white space, controls and zero-width characters
    /// only) counts as [`missing`](Self::missing).
    pub fn text(&mut self, part: &str) {
        self.part(|escape| escape.write_str(part));
    }

    /// Adds one part by its `Display`; it must give the same text for equal values, for ever.
    pub fn display(&mut self, part: &dyn fmt::Display) {
        self.part(|escape| write!(escape, "{part}"));
    }

    /// Says that this part has no value: the call is refused with `Error::MissingKey`.
    pub fn missing(&mut self) {
        self.missing.get_or_insert(self.parts);
    }

    pub(super) fn hex(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return self.missing();
        }
        self.join();
        push_hex(&mut self.text, bytes);
        self.parts += 1;
    }

    fn part(&mut self, write: impl FnOnce(&mut Escape<'_>) -> fmt::Result) {
        self.join();
        let mut escape = Escape {
            text: &mut self.text,
            punctuation: self.punctuation,
            blank: true,
        };
        let failed = write(&mut escape).is_err();
        if failed || escape.blank {
            return self.missing();
        }
        self.parts += 1;
    }

    fn join(&mut self) {
        if self.after_part {
            self.text.push(':');
        }
        self.after_part = true;
    }
}

/// Builds one key, part by part, and remembers the first part that is missing.
#[derive(Debug)]
pub struct KeyBuilder {
    writer: KeyWriter,
    prefix: usize,
    missing: Option<Cow<'static, str>>,
}

impl KeyBuilder {
    /// `punctuation`: each character that the template uses as a literal. The prefix is taken as
    /// checked.
    #[must_use]
    pub fn new(prefix: &str, punctuation: &'static str) -> Self {
        let mut text = String::with_capacity(prefix.len() + DIVIDER.len() + USUAL_PARTS);
        text.push_str(prefix);
        text.push_str(DIVIDER);
        let writer = KeyWriter {
            text,
            punctuation,
            after_part: false,
            parts: 0,
            missing: None,
        };
        Self {
            writer,
            prefix: prefix.len(),
            missing: None,
        }
    }

    /// Adds a value; `name` is how `Error::MissingKey` calls it.
    pub fn part<P: KeyPart + ?Sized>(&mut self, name: &'static str, part: &P) {
        let before = self.writer.parts;
        part.write(&mut self.writer);
        if self.writer.missing.is_some() || self.writer.parts == before {
            self.missing(name);
        }
    }

    /// Adds a template's literal, as it is.
    pub fn literal(&mut self, literal: &str) {
        self.writer.text.push_str(literal);
        self.writer.after_part = false;
    }

    /// Says that the value called `name` is not there.
    pub fn missing(&mut self, name: &'static str) {
        self.missing.get_or_insert(Cow::Borrowed(name));
    }

    /// Adds values that have no name but their position.
    pub(super) fn positional<P: KeyPart>(&mut self, parts: &P) {
        parts.write(&mut self.writer);
        let nothing = (self.writer.parts == 0).then_some(0);
        if let Some(position) = self.writer.missing.or(nothing) {
            self.missing = Some(Cow::Owned(position.to_string()));
        }
    }

    /// The key.
    ///
    /// # Errors
    /// `MissingKey` for the first part that was missing or blank.
    pub fn finish(self) -> Result<Key, Error> {
        match self.missing {
            Some(part) => Err(Error::MissingKey { part }),
            None => Ok(Key::from_text(self.writer.text, self.prefix)),
        }
    }
}

struct Escape<'a> {
    text: &'a mut String,
    punctuation: &'a str,
    blank: bool,
}

impl Escape<'_> {
    fn must_escape(&self, c: char) -> bool {
        // Most of most keys, so asked first.
        let is_plain = c.is_ascii_alphanumeric();
        !is_plain
            && (matches!(c, '%' | ':' | '{' | '}' | '~')
                || c.is_whitespace()
                || c.is_control()
                || self.punctuation.contains(c))
    }
}

impl fmt::Write for Escape<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.blank = self.blank && part.chars().all(is_blank);
        let mut rest = part;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| self.must_escape(c)) {
            self.text.push_str(&rest[..at]);
            push_escaped(self.text, c);
            rest = &rest[at + c.len_utf8()..];
        }
        self.text.push_str(rest);
        Ok(())
    }
}

/// White space, controls, and what Unicode draws as nothing: zero-width and bidirectional marks,
/// the soft hyphen, the Hangul and Braille blanks, variation selectors, tags.
pub(crate) fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

fn push_escaped(text: &mut String, c: char) {
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        text.push('%');
        text.push(char::from(UPPER[usize::from(byte >> 4)]));
        text.push(char::from(UPPER[usize::from(byte & 15)]));
    }
}

pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push(char::from(LOWER[usize::from(byte >> 4)]));
        text.push(char::from(LOWER[usize::from(byte & 15)]));
    }
}

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";
