//! What becomes of a key whose owner died, by point and mode: the tables that are claimed, and how
//! what was seen is shown beside them.

use std::collections::BTreeMap;
use std::fmt;

use idem_tests::mortal::{Body, Mode, Point};

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
    /// The error of the dead process.
    Failed,
    /// Its token is not accepted.
    Rejected,
}
use Verdict::{AfterLease, Failed, Free, Recovered, Rejected, Replay, Unknown};

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Free => "free at once",
            AfterLease => "free after lease",
            Unknown => "OutcomeUnknown",
            Replay => "replay",
            Recovered => "recovered",
            Failed => "error replayed",
            Rejected => "TokenRejected",
        })
    }
}

const fn mode(body: Body, rerun: bool) -> Mode {
    Mode { rerun, body }
}

type Cell = &'static [Verdict];

/// What is claimed.
pub(crate) struct Table<const N: usize> {
    /// The columns.
    modes: [Mode; N],
    /// The rows. Of two verdicts a race decides.
    rows: &'static [(Point, [Cell; N])],
}

/// Not a point of this mode.
const NONE: Cell = &[];
const HOLDS: Cell = &[Unknown];
const RERUNS: Cell = &[AfterLease];
const FOUND: Cell = &[Recovered];
const REPLAYS: Cell = &[Replay];
const FREES: Cell = &[Free];
const KEEPS: Cell = &[Failed];
const REJECTS: Cell = &[Rejected];

/// Bodies that succeed.
#[rustfmt::skip]
pub(crate) static SUCCEEDING: Table<8> = Table {
    modes: [
        mode(Body::Plain, false),
        mode(Body::Plain, true),
        mode(Body::Marked, false),
        mode(Body::Marked, true),
        mode(Body::SettlesIn, false),
        mode(Body::SettlesIn, true),
        mode(Body::Recovers, false),
        mode(Body::Detached, false),
    ],
    rows: &[
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
    ],
};

/// Bodies that fail, which nobody knows until one has said so.
#[rustfmt::skip]
pub(crate) static FAILING: Table<8> = Table {
    modes: [
        mode(Body::Fails, false),
        mode(Body::Fails, true),
        mode(Body::Releases, false),
        mode(Body::Releases, true),
        mode(Body::FailsForGood, false),
        mode(Body::FailsForGood, true),
        mode(Body::FailsInDoubt, false),
        mode(Body::FailsInDoubt, true),
    ],
    rows: &[
        (Point::ClaimSent,  [&[Free, Unknown], &[Free, AfterLease], &[Free, Unknown], &[Free, AfterLease], &[Free, Unknown], &[Free, AfterLease], &[Free, Unknown], &[Free, AfterLease]]),
        (Point::ClaimDone,  [HOLDS, RERUNS, HOLDS, RERUNS, HOLDS, RERUNS, HOLDS, RERUNS]),
        (Point::Claimed,    [HOLDS, RERUNS, HOLDS, RERUNS, HOLDS, RERUNS, HOLDS, RERUNS]),
        (Point::Effect,     [NONE, NONE, NONE, NONE, HOLDS, RERUNS, HOLDS, RERUNS]),
        (Point::SettleSent, [&[Free, Unknown], &[Free, AfterLease], &[Free, Unknown], &[Free, AfterLease], &[Failed, Unknown], &[Failed, AfterLease], HOLDS, &[Free, AfterLease]]),
        (Point::SettleDone, [FREES, FREES, FREES, FREES, KEEPS, KEEPS, HOLDS, FREES]),
        (Point::Settled,    [FREES, FREES, FREES, FREES, KEEPS, KEEPS, HOLDS, FREES]),
    ],
};

/// One-time tokens.
#[rustfmt::skip]
pub(crate) static TOKENS: Table<5> = Table {
    modes: [
        mode(Body::UsesToken, false),
        mode(Body::UsesToken, true),
        mode(Body::ForgetsToken, false),
        mode(Body::HandsBack, false),
        mode(Body::HandsBack, true),
    ],
    rows: &[
        (Point::ClaimSent,  [&[Free, Unknown], &[Free, AfterLease], &[Free, Unknown], &[Free, Unknown], &[Free, AfterLease]]),
        (Point::ClaimDone,  [HOLDS, RERUNS, HOLDS, HOLDS, RERUNS]),
        (Point::Claimed,    [HOLDS, RERUNS, HOLDS, HOLDS, RERUNS]),
        (Point::Effect,     [HOLDS, RERUNS, HOLDS, NONE, NONE]),
        (Point::SettleSent, [&[Unknown, Replay], &[AfterLease, Replay], &[Unknown, Rejected], &[Free, Unknown], &[Free, AfterLease]]),
        (Point::SettleDone, [REPLAYS, REPLAYS, REJECTS, FREES, FREES]),
        (Point::Settled,    [REPLAYS, REPLAYS, REJECTS, FREES, FREES]),
    ],
};

impl<const N: usize> Table<N> {
    /// Each point of each of these modes, and what may become of it.
    pub(crate) fn cells(
        &self,
        has: impl Fn(Mode) -> bool,
    ) -> impl Iterator<Item = (Point, Mode, Cell)> {
        let cells = self.rows.iter().flat_map(move |(point, row)| {
            let row = self.modes.into_iter().zip(row);
            row.map(move |(mode, cell)| (*point, mode, *cell))
        });
        cells.filter(move |(_, mode, cell)| has(*mode) && !cell.is_empty())
    }
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
    pub(crate) fn show<const N: usize>(&self, store: &str, table: &Table<N>) -> String {
        let has = |mode: Mode| self.0.keys().any(|(_, seen)| *seen == mode);
        let modes: Vec<Mode> = table.modes.into_iter().filter(|mode| has(*mode)).collect();
        let names: Vec<String> = modes.iter().map(|mode| mode.name()).collect();
        let mut lines = vec![
            format!("\n| {store} | {} |", names.join(" | ")),
            format!("|---|{}", "---|".repeat(modes.len())),
        ];
        for (point, _) in table.rows {
            let cells: Vec<_> = modes.iter().map(|mode| self.cell(*point, *mode)).collect();
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
