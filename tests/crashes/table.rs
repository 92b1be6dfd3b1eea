//! What becomes of a key whose owner died, by point and mode: the table that is claimed, and how
//! what was seen is shown beside it.

use std::collections::BTreeMap;
use std::fmt;

use idem_tests::mortal::Point;
use idem_tests::mortal::lease::{Body, Mode};

/// What the next caller gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Its body runs, at once.
    Free,
    /// Its body runs when the lease is over.
    AfterLease,
    /// When the lease is over, it is told that nobody knows.
    Unknown,
    /// The result of the dead process.
    Replay,
    /// When the lease is over, what `recover` has found.
    Recovered,
}
use Verdict::{AfterLease, Free, Recovered, Replay, Unknown};

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Free => "free at once",
            AfterLease => "free after lease",
            Unknown => "OutcomeUnknown",
            Replay => "replay",
            Recovered => "recovered",
        })
    }
}

const fn mode(body: Body, rerun: bool) -> Mode {
    Mode { rerun, body }
}

/// The columns.
pub(crate) const MODES: [Mode; 8] = [
    mode(Body::Plain, false),
    mode(Body::Plain, true),
    mode(Body::Marked, false),
    mode(Body::Marked, true),
    mode(Body::SettlesIn, false),
    mode(Body::SettlesIn, true),
    mode(Body::Recovers, false),
    mode(Body::Detached, false),
];

type Cell = &'static [Verdict];

/// Not a point of this mode.
const NONE: Cell = &[];
const HOLDS: Cell = &[Unknown];
const RERUNS: Cell = &[AfterLease];
const FOUND: Cell = &[Recovered];
const REPLAYS: Cell = &[Replay];

/// The rows. Of two verdicts a race decides.
#[rustfmt::skip]
const TABLE: [(Point, [Cell; 8]); 15] = [
    (Point::ClaimSent,      [&[Free, Unknown], &[Free, AfterLease], &[Free, AfterLease], &[Free, AfterLease], &[Free, Unknown], &[Free, AfterLease], &[Free, AfterLease], &[Free, Unknown]]),
    (Point::ClaimDone,      [HOLDS, RERUNS, RERUNS, RERUNS, HOLDS, RERUNS, RERUNS, HOLDS]),
    (Point::Claimed,        [HOLDS, RERUNS, RERUNS, RERUNS, HOLDS, RERUNS, RERUNS, HOLDS]),
    (Point::CheckpointSent, [NONE, NONE, &[AfterLease, Unknown], RERUNS, NONE, NONE, NONE, NONE]),
    (Point::CheckpointDone, [NONE, NONE, HOLDS, RERUNS, NONE, NONE, NONE, NONE]),
    (Point::Passed,         [NONE, NONE, HOLDS, RERUNS, NONE, NONE, NONE, NONE]),
    (Point::Effect,         [HOLDS, RERUNS, HOLDS, RERUNS, HOLDS, RERUNS, FOUND, HOLDS]),
    (Point::RecordSent,     [NONE, NONE, NONE, NONE, HOLDS, RERUNS, NONE, NONE]),
    (Point::Written,        [NONE, NONE, NONE, NONE, HOLDS, RERUNS, NONE, NONE]),
    (Point::CommitSent,     [NONE, NONE, NONE, NONE, &[Unknown, Replay], &[AfterLease, Replay], NONE, NONE]),
    (Point::CommitDone,     [NONE, NONE, NONE, NONE, REPLAYS, REPLAYS, NONE, NONE]),
    (Point::Committed,      [NONE, NONE, NONE, NONE, REPLAYS, REPLAYS, NONE, NONE]),
    (Point::SettleSent,     [&[Unknown, Replay], &[AfterLease, Replay], &[Unknown, Replay], &[AfterLease, Replay], REPLAYS, REPLAYS, &[Recovered, Replay], &[Unknown, Replay]]),
    (Point::SettleDone,     [REPLAYS, REPLAYS, REPLAYS, REPLAYS, REPLAYS, REPLAYS, REPLAYS, REPLAYS]),
    (Point::Settled,        [REPLAYS, REPLAYS, REPLAYS, REPLAYS, REPLAYS, REPLAYS, REPLAYS, REPLAYS]),
];

/// Each point of each mode, and what may become of it.
pub(crate) fn cells() -> impl Iterator<Item = (Point, Mode, Cell)> {
    TABLE.into_iter().flat_map(|(point, row)| {
        let row = MODES.into_iter().zip(row);
        row.map(move |(mode, cell)| (point, mode, cell))
            .filter(|(_, _, cell)| !cell.is_empty())
    })
}

/// What was seen, how often.
#[derive(Default)]
pub(crate) struct Seen(BTreeMap<(Point, Mode), BTreeMap<Verdict, usize>>);

impl Seen {
    pub(crate) fn add(&mut self, point: Point, mode: Mode, verdict: Verdict) {
        let cell = self.0.entry((point, mode)).or_default();
        *cell.entry(verdict).or_default() += 1;
    }

    /// What was seen and is not among `claimed`.
    pub(crate) fn others(&self, point: Point, mode: Mode, claimed: Cell) -> Vec<Verdict> {
        let seen = self
            .0
            .get(&(point, mode))
            .into_iter()
            .flat_map(BTreeMap::keys);
        seen.filter(|verdict| !claimed.contains(verdict))
            .copied()
            .collect()
    }

    /// As a table in Markdown, without what did not occur.
    pub(crate) fn show(&self, store: &str) -> String {
        let has = |mode: Mode| self.0.keys().any(|(_, seen)| *seen == mode);
        let modes: Vec<Mode> = MODES.into_iter().filter(|mode| has(*mode)).collect();
        let names: Vec<String> = modes.iter().map(|mode| mode.name()).collect();
        let mut lines = vec![
            format!("\n| {store} | {} |", names.join(" | ")),
            format!("|---|{}", "---|".repeat(modes.len())),
        ];
        for (point, _) in TABLE {
            let cells: Vec<_> = modes.iter().map(|mode| self.cell(point, *mode)).collect();
            if cells.iter().any(|cell| !cell.is_empty()) {
                lines.push(format!("| {point} | {} |", cells.join(" | ")));
            }
        }
        lines.join("\n")
    }

    fn cell(&self, point: Point, mode: Mode) -> String {
        let Some(cell) = self.0.get(&(point, mode)) else {
            return String::new();
        };
        let counted = cell
            .iter()
            .map(|(verdict, count)| format!("{verdict} {count}"));
        counted.collect::<Vec<_>>().join(", ")
    }
}
