//! The promises, each as a function of what is known of a key's calls.

use super::event::{Answer, End, Finding};
use super::judge::{Broken, Law, Level, Terms};
use super::known::{Call, Point};

pub(super) struct History<'a> {
    pub(super) terms: Terms,
    pub(super) calls: &'a [Call],
    /// Effects that the database has of calls that nobody made.
    pub(super) foreign: Vec<u64>,
}

/// The clock of a store and the one of the histories, over a lease.
const CLOCKS_DIFFER: u64 = 5_000;

/// Who breaks a law, and how.
type Judge = fn(&History<'_>) -> Option<String>;

pub(super) fn broken(history: &History<'_>) -> Vec<Broken> {
    let laws: [(Law, Judge); 10] = [
        (Law::OneResult, one_result),
        (Law::ResultHasEffect, result_has_effect),
        (Law::OneEffect, one_effect),
        (Law::OnePasses, one_passes),
        (Law::OneLives, one_lives),
        (Law::OneBody, one_body),
        (Law::FencesGrow, fences_grow),
        (Law::ResultAfterCommit, result_after_commit),
        (Law::SuccessStays, success_stays),
        (Law::Answered, answered),
    ];
    let judged = laws.into_iter();
    judged
        .filter_map(|(law, judge)| judge(history).map(|why| Broken { law, why }))
        .collect()
}

impl History<'_> {
    fn is_in_a_transaction(&self) -> bool {
        self.terms.level == Level::Transaction
    }

    fn results(&self) -> impl Iterator<Item = (&Call, Point, u64, bool)> {
        self.calls.iter().filter_map(|call| {
            let (point, value, confirmed) = call.result()?;
            Some((call, point, value, confirmed))
        })
    }

    fn call(&self, number: u64) -> Option<&Call> {
        self.calls.iter().find(|call| call.number == number)
    }

    /// Attempts, with where their bodies began and their fences.
    fn attempts(&self) -> impl Iterator<Item = (&Call, Point, u64)> {
        self.calls.iter().filter_map(|call| {
            let (point, fence) = call.attempt()?;
            Some((call, point, fence))
        })
    }

    /// Each two attempts, the one with the lower fence first.
    fn pairs(&self) -> impl Iterator<Item = (&Call, &Call, Point)> {
        self.attempts().flat_map(|(later, begun, fence)| {
            let before = self.attempts().filter(move |(_, _, other)| *other < fence);
            before.map(move |(earlier, ..)| (earlier, later, begun))
        })
    }

    /// What an attempt before this moment may still hold: its lease counts from when its claim was
    /// sent, which was after the call was made.
    fn lease_is_over(&self, earlier: &Call, now: Point) -> bool {
        let lease = u64::try_from(self.terms.lease.as_micros()).unwrap_or(u64::MAX);
        earlier.invoked.at + lease <= now.at + CLOCKS_DIFFER
    }
}

fn one_result(history: &History<'_>) -> Option<String> {
    let rerun = history.terms.level == Level::Rerun;
    let mut binding = history
        .results()
        .filter(|(.., confirmed)| *confirmed || !rerun);
    let (first, _, value, _) = binding.next()?;
    let (other, _, another, _) = binding.find(|(_, _, another, _)| *another != value)?;
    Some(format!(
        "{} got {value}, {} got {another}",
        first.number, other.number
    ))
}

fn result_has_effect(history: &History<'_>) -> Option<String> {
    let has_none = |value: u64, point: Point| {
        let effects = history.call(value).map(|call| call.effects.as_slice());
        !effects
            .unwrap_or_default()
            .iter()
            .any(|effect| effect.place < point.place)
    };
    let (call, _, value, _) = history
        .results()
        .find(|(_, point, value, _)| has_none(*value, *point))?;
    Some(format!("{} got {value} without an effect", call.number))
}

fn one_effect(history: &History<'_>) -> Option<String> {
    if let Some(foreign) = history.foreign.first() {
        return Some(format!("{foreign} was never called"));
    }
    let effects: Vec<u64> = history
        .calls
        .iter()
        .flat_map(|call| call.effects.iter().map(|_| call.number))
        .collect();
    let is_too_many = effects.len() > 1 && history.terms.level != Level::Rerun;
    is_too_many.then(|| format!("effects of {effects:?}"))
}

fn one_passes(history: &History<'_>) -> Option<String> {
    let passes = |call: &Call| match history.terms.level {
        Level::Hold => call.attempt().is_some(),
        Level::Recover => call.passed.is_some(),
        Level::Rerun | Level::Transaction => false,
    };
    let found_nothing = |call: &Call| matches!(call.found, Some((_, Finding::NotDone)));
    let (earlier, later, _) = history.pairs().find(|(earlier, later, _)| {
        passes(earlier)
            && passes(later)
            && earlier.ended_so(End::Nothing).is_none()
            && !found_nothing(later)
    })?;
    Some(format!(
        "{} and {} passed their checkpoints",
        earlier.number, later.number
    ))
}

fn one_lives(history: &History<'_>) -> Option<String> {
    if history.is_in_a_transaction() {
        return None;
    }
    let has_gone = |earlier: &Call, begun: Point| match earlier.ended {
        Some((over, End::Nothing | End::Unknown | End::Dropped)) => over.place < begun.place,
        _ => false,
    };
    let (earlier, later, _) = history.pairs().find(|(earlier, _, begun)| {
        earlier.is_settled()
            || !(has_gone(earlier, *begun) || history.lease_is_over(earlier, *begun))
    })?;
    Some(format!(
        "{} began while {} lived, or after its success",
        later.number, earlier.number
    ))
}

fn one_body(history: &History<'_>) -> Option<String> {
    let twice = history
        .calls
        .iter()
        .find(|call| call.begun.len() > 1 || call.effects.len() > 1)?;
    Some(format!("{} ran its body twice", twice.number))
}

fn fences_grow(history: &History<'_>) -> Option<String> {
    if history.is_in_a_transaction() {
        return None;
    }
    for (later, _, fence) in history.attempts() {
        let falls = history.attempts().find(|(earlier, begun, other)| {
            let is_earlier = begun.place < later.invoked.place;
            earlier.number != later.number && (*other == fence || is_earlier && *other > fence)
        });
        if let Some((earlier, _, other)) = falls {
            return Some(format!(
                "{} has {other}, and {} after it {fence}",
                earlier.number, later.number
            ));
        }
    }
    None
}

fn result_after_commit(history: &History<'_>) -> Option<String> {
    let was_done = |value: u64, point: Point| {
        let maker = history.call(value);
        let done = match history.terms.level {
            Level::Transaction => maker.and_then(|maker| maker.committing),
            _ => maker.and_then(|maker| maker.ended_so(End::Ok)),
        };
        let found = history.calls.iter().filter_map(|call| match call.found {
            Some((point, Finding::Done(found))) if found == value => Some(point),
            _ => None,
        });
        done.into_iter()
            .chain(found)
            .any(|done| done.place < point.place)
    };
    let (call, _, value, _) = history
        .results()
        .find(|(_, point, value, _)| !was_done(*value, *point))?;
    Some(format!("{} got {value} before it was done", call.number))
}

fn success_stays(history: &History<'_>) -> Option<String> {
    let (_, success, ..) = history
        .results()
        .filter(|(.., confirmed)| *confirmed)
        .min_by_key(|(_, point, ..)| point.place)?;
    let has_lost_it = |call: &&Call| match &call.returned {
        _ if call.attempt().is_some() => true,
        None | Some((_, Answer::Ok { .. } | Answer::Dropped)) => false,
        Some((_, Answer::Refused(code))) => !may_follow_a_success(history, code),
        Some((_, Answer::Failed | Answer::Panicked)) => true,
    };
    let mut after = history
        .calls
        .iter()
        .filter(|call| call.invoked.place > success.place);
    let call = after.find(has_lost_it)?;
    Some(format!(
        "{} came after a success: {:?}",
        call.number,
        call.returned.as_ref().map(|(_, answer)| answer)
    ))
}

/// A store that cannot be asked; in transaction mode also the database, and another duplicate that
/// looks at the same moment.
fn may_follow_a_success(history: &History<'_>, code: &str) -> bool {
    code == "store" || history.is_in_a_transaction() && matches!(code, "in_progress" | "database")
}

fn answered(history: &History<'_>) -> Option<String> {
    let is_final = |call: &&Call| match &call.returned {
        Some((_, Answer::Ok { .. })) => true,
        Some((_, Answer::Refused(code))) => {
            history.terms.level == Level::Hold && code == "outcome_unknown"
        }
        _ => false,
    };
    let mut sweeps = history.calls.iter().filter(|call| call.is_of_the_sweeper());
    if sweeps.any(|call| is_final(&call)) {
        return None;
    }
    let last = history.calls.last();
    Some(format!("nobody was answered at last: {last:?}"))
}
