//! Whether the history of a key keeps the promises of its level.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event::{Event, What};
use super::known::{Point, calls};
use super::laws::{self, History};

/// What is claimed of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `on_abandoned = "hold"`; the claim is the checkpoint.
    Hold,
    /// Hold, with a checkpoint of the body, and `recover`.
    Recover,
    /// `on_abandoned = "rerun"`.
    Rerun,
    /// `tx = …`.
    Transaction,
    /// A lock, and what is written under it looks at fences.
    Lock,
}

/// What a history is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// What was claimed.
    pub level: Level,
    /// The lease of an attempt.
    pub lease: Duration,
}

/// One promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// All callers get one result, but for one that was given unconfirmed at rerun.
    OneResult,
    /// A result that somebody got is that of an effect that happened before.
    ResultHasEffect,
    /// The effect happens once; not at rerun.
    OneEffect,
    /// One attempt passes its checkpoint, unless those before said, or were found to have done,
    /// nothing; at hold.
    OnePasses,
    /// A body begins only after those before it ended, or after the lease of their attempts; never
    /// after a success that the store has.
    OneLives,
    /// One call has one attempt.
    OneBody,
    /// Of two attempts, the one that was asked for after the other had begun has the higher fence;
    /// no fence is given twice.
    FencesGrow,
    /// Nobody gets a result before the one who made it was done.
    ResultAfterCommit,
    /// Who is told of an error or a panic of a body ran one that ended so.
    OwnErrors,
    /// Who asks after a success gets it, or cannot reach the store.
    SuccessStays,
    /// No call is refused but for what it can hear of the store and of other attempts.
    KnownRefusals,
    /// When everybody has left, an attempt that nobody renews keeps the key for no longer than its
    /// lease; not in a transaction.
    FreeAtLast,
    /// When the faults are over, the key has an answer.
    Answered,
    /// A lock: nobody gets it while another holds it, by the first lease, or later is told so.
    OneHolder,
    /// A lock: nothing that is written under it stands behind the write of a later holder.
    WritesInOrder,
    /// A lock: whose lock has gone to another is not told that it was released.
    LossIsTold,
}

impl Law {
    /// Whether a store that lost its records may break it.
    fn falls_with_the_store(self) -> bool {
        !matches!(
            self,
            Self::ResultHasEffect
                | Self::OneBody
                | Self::FencesGrow
                | Self::ResultAfterCommit
                | Self::OwnErrors
                | Self::KnownRefusals
                | Self::FreeAtLast
                | Self::Answered
                | Self::WritesInOrder
        )
    }
}

/// A law that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub law: Law,
    /// By whom.
    pub why: String,
}

/// The time of a fault, in microseconds of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Before it.
    pub from: u64,
    /// After it.
    pub until: u64,
}

/// What came of judging a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Promises that were broken.
    pub violations: Vec<Broken>,
    /// Promises that ended with the records of the store.
    pub losses: Vec<Broken>,
    /// Whether there was an attempt to be judged by everything that is promised: the store had
    /// lost nothing yet.
    pub is_whole: bool,
}

/// Judges the history of a key. In transaction mode `rows` are the effects that the database has,
/// by the call that had them; elsewhere they stand in the history.
///
/// What needs the store's records is judged up to the first of the `losses`, the times in which it may
/// have lost some, that the key could have had a record at.
#[must_use]
pub fn judge(terms: Terms, events: &[Event], rows: &[u64], losses: &[Span]) -> Verdict {
    let intact = before(events, losses);
    let mut verdict = Verdict {
        is_whole: intact
            .iter()
            .any(|event| matches!(event.what, What::Begun { .. })),
        ..Verdict::default()
    };
    let all = broken(terms, events, rows);
    if intact.len() == events.len() {
        verdict.violations = all;
        return verdict;
    }
    let until_then = broken(terms, intact, rows);
    let until_then = until_then.into_iter();
    verdict.violations = until_then
        .filter(|broken| broken.law.falls_with_the_store())
        .collect();
    for broken in all {
        if !broken.law.falls_with_the_store() {
            verdict.violations.push(broken);
        } else if !verdict
            .violations
            .iter()
            .any(|known| known.law == broken.law)
        {
            verdict.losses.push(broken);
        }
    }
    verdict
}

fn broken(terms: Terms, events: &[Event], rows: &[u64]) -> Vec<Broken> {
    let mut calls = calls(events);
    // What is committed is there as one; when it came about is not known.
    let always = Point { place: 0, at: 0 };
    let mut unknown = BTreeMap::new();
    for row in rows {
        match calls.iter_mut().find(|call| call.number == *row) {
            Some(call) => call.effects.push(always),
            None => *unknown.entry(*row).or_insert(0) += 1,
        }
    }
    laws::broken(&History {
        terms,
        calls: &calls,
        foreign: unknown.keys().copied().collect(),
    })
}

/// What there was before the store lost records while the key had one, or could have.
fn before<'a>(events: &'a [Event], losses: &[Span]) -> &'a [Event] {
    let Some(first) = events.first() else {
        return events;
    };
    let touching = losses.iter().filter(|loss| first.at <= loss.until);
    let Some(from) = touching.map(|loss| loss.from).min() else {
        return events;
    };
    let intact = events.iter().position(|event| event.at >= from);
    &events[..intact.unwrap_or(events.len())]
}
