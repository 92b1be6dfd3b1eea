//! Small mistakes, by what a line of code looks like.

use std::ops::Range;

/// One change of a line: an operator's name, which bytes go, and what comes instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) operator: &'static str,
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

impl Change {
    pub(crate) fn new(
        operator: &'static str,
        range: Range<usize>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            operator,
            range,
            text: text.into(),
        }
    }

    pub(crate) fn of(&self, line: &str) -> String {
        let mut changed = line.to_owned();
        changed.replace_range(self.range.clone(), &self.text);
        changed
    }
}

/// Where `pattern` stands in `line`.
pub(crate) fn places(line: &str, pattern: &str) -> Vec<Range<usize>> {
    let found = line.match_indices(pattern);
    found.map(|(at, text)| at..at + text.len()).collect()
}

/// Each place of each pattern, replaced by the pattern's other.
pub(crate) fn swaps(line: &str, table: &[(&'static str, &str, &str)]) -> Vec<Change> {
    let each = table.iter().flat_map(|(operator, pattern, other)| {
        let found = places(line, pattern).into_iter();
        found.map(|range| Change::new(operator, range, *other))
    });
    each.collect()
}

/// Each whole number that stands for itself, one more.
pub(crate) fn numbers(line: &str) -> Vec<Change> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@' | '\'');
    let mut changes = Vec::new();
    let mut at = 0;
    while let Some(begin) = line[at..].find(|c: char| c.is_ascii_digit()) {
        let begin = at + begin;
        let length = line[begin..].find(|c: char| !c.is_ascii_digit());
        let end = length.map_or(line.len(), |length| begin + length);
        at = end;
        let is_part_of_a_name =
            line[..begin].ends_with(is_name) || line[end..].starts_with(is_name);
        if is_part_of_a_name {
            continue;
        }
        if let Ok(number) = line[begin..end].parse::<u64>() {
            changes.push(Change::new(
                "one-more",
                begin..end,
                (number + 1).to_string(),
            ));
        }
    }
    changes
}
