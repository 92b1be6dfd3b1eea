//! Mutants that need not die.

use crate::equivalents::{SCRIPTS, STATEMENTS};
use crate::mutant::Mutant;
use crate::survivors::SURVIVORS;

/// A file, a line of it and what the mutant makes of that line.
pub(crate) type Line = (&'static str, &'static str, &'static str);

/// Why, and which.
pub(crate) type Reason = (&'static str, &'static [Line]);

/// In what sense a mutant is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It does what the original does.
    Equivalent,
    /// It does not, but no test here sees it.
    Survivor,
}

const ALL: [(Why, &[Reason]); 3] = [
    (Why::Equivalent, SCRIPTS),
    (Why::Equivalent, STATEMENTS),
    (Why::Survivor, SURVIVORS),
];

/// Why it may survive.
pub(crate) fn reason(mutant: &Mutant) -> Option<(Why, &'static str)> {
    ALL.into_iter().find_map(|(why, reasons)| {
        let is_it = |(_, lines): &&Reason| lines.iter().any(|line| is(mutant, line));
        let (reason, _) = reasons.iter().find(is_it)?;
        Some((why, *reason))
    })
}

/// Entries that speak of a mutant that is not there any more.
pub(crate) fn stale(mutants: &[Mutant]) -> Vec<Line> {
    let is_there = |line: &Line| mutants.iter().any(|mutant| is(mutant, line));
    let reasons = ALL.into_iter().flat_map(|(_, reasons)| reasons);
    let lines = reasons.flat_map(|(_, lines)| *lines);
    lines.copied().filter(|line| !is_there(line)).collect()
}

fn is(mutant: &Mutant, line: &Line) -> bool {
    *line == (mutant.file, &*mutant.before, &*mutant.after)
}
