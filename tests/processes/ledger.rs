//! What bodies did, kept outside of every record.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::scene::ORDER;

/// What bodies did, a line a deed, outside of every record.
pub(crate) struct Ledger {
    folder: TempDir,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::Builder::new()
                .prefix("idem-ledger-")
                .tempdir()
                .unwrap(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// How often `deed` was done for an order: `run`, `effect`, or `asked` (with the function
    /// `recovery`).
    pub(crate) fn count(&self, deed: &str, function: &str, order: &str) -> usize {
        let deed = format!("{deed} {function} {order} ");
        self.text()
            .lines()
            .filter(|line| line.starts_with(&deed))
            .count()
    }

    /// For [`ORDER`]: how often a body ran.
    pub(crate) fn runs(&self, function: &str) -> usize {
        self.count("run", function, ORDER)
    }

    /// For [`ORDER`]: how often the effect happened.
    pub(crate) fn effects(&self, function: &str) -> usize {
        self.effects_for(function, ORDER)
    }

    pub(crate) fn effects_for(&self, function: &str, order: &str) -> usize {
        self.count("effect", function, order)
    }

    /// For [`ORDER`]: how often a recovery was asked.
    pub(crate) fn asked(&self) -> usize {
        self.count("asked", "recovery", ORDER)
    }

    /// Orders for which `deed` was done more than once.
    pub(crate) fn doubles(&self, deed: &str) -> usize {
        let text = self.text();
        let deeds = text.lines().filter_map(|line| {
            let (done, rest) = line.split_once(' ')?;
            (done == deed).then(|| rest.rsplit_once(' ').map_or(rest, |(order, _)| order))
        });
        let mut seen: Vec<&str> = deeds.collect();
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        all - seen.len()
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap_or_default()
    }
}
