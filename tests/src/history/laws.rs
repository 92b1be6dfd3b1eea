//! The promises, each as a function of what is known of a key's calls.

use super::event::{Answer, End, Finding};
use super::judge::{Broken, Law, Level, Terms};
use super::known::{Call, Point};
use super::locks;

pub(super) struct History<'a> {
    pub(super) terms: Terms,
    pub(super) calls: &'a [Call],
    /// Effects that the database has of calls that nobody made.
    pub(super) foreign: Vec<u64>,
}

/// The clock of a store and the one of the histories, over a lease.
const CLOCKS_DIFFER: u64 = 5_000;

/// Two attempts.
pub(super) struct Pair<'a> {
    pub(super) earlier: &'a Call,
    pub(super) later: &'a Call,
    /// The body of the later one.
    pub(super) begun: Point,
    /// In the same order.
    fences: (u64, u64),
}

impl Pair<'_> {
    /// Whether the earlier one's body had ended in one of these ways when the later one's began.
    pub(super) fn was_over(&self, ends: &[End]) -> bool {
        let ended = self.earlier.ended;
        ended.is_some_and(|(over, end)| ends.contains(&end) && over.place < self.begun.place)
    }
}

/// Who breaks a law, and how.
pub(super) type Judge = fn(&History<'_>) -> Option<String>;

pub(super) fn broken(history: &History<'_>) -> Vec<Broken> {
    let laws = match history.terms.level {
        Level::Lock => &locks::LAWS[..],
        _ => &LAWS,
    };
    laws.iter()
        .filter_map(|&(law, judge)| judge(history).map(|why| Broken { law, why }))
        .collect()
}

/// Those of functions.
const LAWS: [(Law, Judge); 13] = [
    (Law::OneResult, one_result),
    (Law::ResultHasEffect, result_has_effect),
    (Law::OneEffect, one_effect),
    (Law::OnePasses, one_passes),
    (Law::OneLives, one_lives),
    (Law::OneBody, one_body),
    (Law::FencesGrow, fences_grow),
    (Law::ResultAfterCommit, result_after_commit),
    (Law::OwnErrors, own_errors),
    (Law::SuccessStays, success_stays),
    (Law::KnownRefusals, known_refusals),
    (Law::FreeAtLast, free_at_last),
    (Law::Answered, answered),
];

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
    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.attempts().flat_map(|(later, begun, fence)| {
            let before = self.attempts().filter(move |(_, _, other)| *other < fence);
            before.map(move |(earlier, _, other)| Pair {
                earlier,
                later,
                begun,
                fences: (other, fence),
            })
        })
    }

    /// Whether somebody was given an attempt's result, and the store has it.
    fn is_settled(&self, attempt: &Call) -> bool {
        self.results()
            .any(|(_, _, value, confirmed)| confirmed && value == attempt.number)
    }

    /// Whether somebody's lookup found that attempts before his own have no effect, and are to have
    /// none: those with at most the lower fence, for those with the higher one.
    fn is_ruled_out(&self, (lower, higher): (u64, u64)) -> bool {
        let mut lookups = self.calls.iter().flat_map(|call| &call.found);
        lookups.any(|(_, fence, finding)| {
            *finding == Finding::NotDone && lower < *fence && *fence <= higher
        })
    }

    /// What an attempt before this moment may still hold: its first lease, as if it counted from the
    /// call. Neither the time that the call waited for it nor its renewals are in the history.
    pub(super) fn lease_is_over(&self, earlier: &Call, now: Point) -> bool {
        earlier.invoked.at + self.lease() <= now.at + CLOCKS_DIFFER
    }

    /// In microseconds.
    fn lease(&self) -> u64 {
        u64::try_from(self.terms.lease.as_micros()).unwrap_or(u64::MAX)
    }

    fn sweeps(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.is_of_the_sweeper())
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

pub(super) fn result_has_effect(history: &History<'_>) -> Option<String> {
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
        Level::Rerun | Level::Transaction | Level::Lock => false,
    };
    let Pair { earlier, later, .. } = history.pairs().find(|pair| {
        passes(pair.earlier)
            && passes(pair.later)
            && !pair.was_over(&[End::Nothing])
            && !history.is_ruled_out(pair.fences)
    })?;
    Some(format!(
        "{} and {} passed their checkpoints",
        earlier.number, later.number
    ))
}

/// How a body ends that has no result: its attempt may be gone before its lease is.
const GONE: [End; 3] = [End::Nothing, End::Unknown, End::Dropped];

fn one_lives(history: &History<'_>) -> Option<String> {
    if history.is_in_a_transaction() {
        return None;
    }
    if let Some(pair) = history
        .pairs()
        .find(|pair| history.is_settled(pair.earlier))
    {
        let [later, earlier] = [pair.later.number, pair.earlier.number];
        return Some(format!("{later} began after the success of {earlier}"));
    }
    let pair = history
        .pairs()
        .find(|pair| !pair.was_over(&GONE) && !history.lease_is_over(pair.earlier, pair.begun))?;
    Some(format!(
        "{} began while {} lived, by this machine's clock (a store's clock that was set forward \
         meanwhile looks so, too)",
        pair.later.number, pair.earlier.number
    ))
}

pub(super) fn one_body(history: &History<'_>) -> Option<String> {
    let twice = history
        .calls
        .iter()
        .find(|call| call.begun.len() > 1 || call.effects.len() > 1)?;
    Some(format!("{} ran its body twice", twice.number))
}

pub(super) fn fences_grow(history: &History<'_>) -> Option<String> {
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

pub(super) fn result_after_commit(history: &History<'_>) -> Option<String> {
    let was_done = |value: u64, point: Point| {
        let maker = history.call(value);
        let done = match history.terms.level {
            Level::Transaction => maker.and_then(|maker| maker.committing),
            _ => maker.and_then(|maker| maker.ended_so(End::Ok)),
        };
        let lookups = history.calls.iter().flat_map(|call| &call.found);
        let found = lookups
            .filter(|(.., finding)| *finding == Finding::Done(value))
            .map(|(point, ..)| *point);
        done.into_iter()
            .chain(found)
            .any(|done| done.place < point.place)
    };
    let (call, _, value, _) = history
        .results()
        .find(|(_, point, value, _)| !was_done(*value, *point))?;
    Some(format!("{} got {value} before it was done", call.number))
}

pub(super) fn own_errors(history: &History<'_>) -> Option<String> {
    let ended = |call: &Call, ends: &[End]| call.ended.is_some_and(|(_, end)| ends.contains(&end));
    let is_of_nobody = |call: &&Call| match call.returned {
        Some((_, Answer::Failed)) => !ended(call, &[End::Nothing, End::Unknown]),
        Some((_, Answer::Panicked)) => !ended(call, &[End::Unknown]),
        _ => false,
    };
    let call = history.calls.iter().find(is_of_nobody)?;
    Some(format!(
        "{} was told of an error or a panic that its body did not end with",
        call.number
    ))
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

/// What a caller can hear of the store and of other attempts. A grant that is heard too late is lost
/// before a body begins.
pub(super) fn known_refusals(history: &History<'_>) -> Option<String> {
    let is_known = |code: &str| match code {
        "store" | "in_progress" => true,
        "lease_lost" => !history.is_in_a_transaction(),
        "outcome_unknown" => matches!(history.terms.level, Level::Hold | Level::Recover),
        "database" => history.is_in_a_transaction(),
        _ => false,
    };
    let mut refusals = history
        .calls
        .iter()
        .filter_map(|call| match &call.returned {
            Some((_, Answer::Refused(code))) => Some((call, code)),
            _ => None,
        });
    let (call, code) = refusals.find(|(_, code)| !is_known(code))?;
    Some(format!("{} was refused: {code}", call.number))
}

/// When nobody is left but the sweeper, a lease has to end: one, and another for a renewal that was
/// still under way. Once it was told anything else, the key may be held by a call of its own.
pub(super) fn free_at_last(history: &History<'_>) -> Option<String> {
    if history.is_in_a_transaction() {
        return None;
    }
    let is_held = |call: &&Call| matches!(&call.returned, Some((_, Answer::Refused(code))) if code == "in_progress");
    let begin = history.sweeps().next()?.invoked.at;
    let last = history.sweeps().take_while(is_held).last()?;
    let after = last.invoked.at - begin;
    let is_too_long = after > 2 * history.lease();
    is_too_long.then(|| format!("held {after} µs after all the others had ended"))
}

pub(super) fn answered(history: &History<'_>) -> Option<String> {
    let is_final = |call: &Call| match &call.returned {
        Some((_, Answer::Ok { .. })) => true,
        Some((_, Answer::Refused(code))) => {
            history.terms.level == Level::Hold && code == "outcome_unknown"
        }
        _ => false,
    };
    if history.sweeps().any(is_final) {
        return None;
    }
    let last = history.calls.last();
    Some(format!("nobody was answered at last: {last:?}"))
}
