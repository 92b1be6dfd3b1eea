//! One small mistake in one place.

use std::fmt;

/// What a relay changes in the texts that pass it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Edit {
    /// A single word is a statement of its own; it may stand in the words of others, too.
    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        let is_word = self.from.bytes().all(|byte| byte.is_ascii_alphabetic());
        if is_word && text.trim_end_matches('\0') != self.from {
            return None;
        }
        let changed = text.replace(&self.from, &self.to);
        (changed != text).then_some(changed)
    }
}

/// A mistake that somebody could have made in a script or a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// The file's name.
    pub(crate) file: &'static str,
    /// Both from 1.
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// What was done to it, in a word.
    pub(crate) operator: &'static str,
    /// The line as it is, and as it would be.
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) edit: Edit,
}

impl fmt::Display for Mutant {
    /// A name that stays while the file does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}:{}",
            self.file, self.line, self.column, self.operator
        )
    }
}
