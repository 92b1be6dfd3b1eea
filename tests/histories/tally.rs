//! What there was to be judged: a history in which nothing happens keeps every promise.

use std::collections::BTreeMap;
use std::fmt;

use idem_tests::history::{Answer, CALLS_PER_WORKER, End, Event, Finding, SWEEPER, Span, What};

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) keys: usize,
    calls: usize,
    /// Those that no fault was applied in.
    calm: Part,
    pub(crate) attempts: usize,
    pub(crate) replays: usize,
    unconfirmed: usize,
    /// Calls whose process died.
    unanswered: usize,
    found: Findings,
    /// Writes that a fence has barred.
    barred: usize,
    /// Bodies that ended after a later one had begun.
    overtaken: usize,
    /// Keys whose outcome nobody knows.
    held: usize,
    /// Keys with more than one effect.
    repeated: usize,
    /// What callers were told instead of a result, by code.
    refused: BTreeMap<String, usize>,
}

/// Calls, and how many of them did not reach the store.
#[derive(Debug, Default)]
struct Part {
    all: usize,
    in_vain: usize,
}

/// Lookups that found an effect, and those that found none.
#[derive(Debug, Default)]
struct Findings {
    done: usize,
    not_done: usize,
}

impl Tally {
    /// Adds what the calls on one key have seen.
    pub(crate) fn add(&mut self, events: &[Event], rows: usize, faults: &[Span]) {
        let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        let returned = count(|event| matches!(event.what, What::Returned(_)));
        self.keys += 1;
        let calls = count(|event| event.what == What::Invoked);
        self.calls += calls;
        self.attempts += count(|event| matches!(event.what, What::Begun { .. }));
        self.replays += count(is_replay);
        self.unconfirmed += count(is_unconfirmed);
        self.unanswered += calls - returned;
        self.barred += count(|event| event.what == What::Barred);
        self.overtaken += overtaken(events);
        self.calm.add(events, faults);
        for event in events {
            match &event.what {
                What::Found { finding, .. } => match finding {
                    Finding::Done(_) => self.found.done += 1,
                    Finding::NotDone => self.found.not_done += 1,
                },
                What::Returned(Answer::Refused(code)) => {
                    *self.refused.entry(code.clone()).or_insert(0) += 1;
                }
                _ => {}
            }
        }
        self.held += usize::from(events.last().is_some_and(is_held));
        let effects = rows + count(|event| event.what == What::Happened);
        self.repeated += usize::from(effects > 1);
    }
}

impl Part {
    /// Adds the calls between which and their answers no fault was applied, while there were faults.
    fn add(&mut self, events: &[Event], faults: &[Span]) {
        let mut invoked = BTreeMap::new();
        for Event { at, call, what } in events {
            match what {
                What::Invoked if call / CALLS_PER_WORKER != SWEEPER => {
                    invoked.insert(call, *at);
                }
                What::Returned(answer) => {
                    let Some(from) = invoked.get(call) else {
                        continue;
                    };
                    let meets = |fault: &Span| fault.from <= *at && *from <= fault.until;
                    if !faults.iter().any(meets) {
                        self.all += 1;
                        self.in_vain += usize::from(is_in_vain(answer));
                    }
                }
                _ => {}
            }
        }
    }
}

/// How many bodies ended after a later one had begun.
pub(crate) fn overtaken(events: &[Event]) -> usize {
    let mut fences = BTreeMap::new();
    let mut count = 0;
    for event in events {
        match event.what {
            What::Begun { fence } => {
                fences.insert(event.call, fence);
            }
            What::Ended(End::Ok | End::Nothing | End::Unknown) => {
                let highest = fences.values().max();
                count += usize::from(fences.get(&event.call) < highest);
            }
            _ => {}
        }
    }
    count
}

/// Whether the store, or the database beside it, could not be asked.
fn is_out_of_reach(code: &str) -> bool {
    matches!(code, "store" | "database")
}

fn is_in_vain(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(code) if is_out_of_reach(code))
}

fn is_replay(event: &Event) -> bool {
    matches!(event.what, What::Returned(Answer::Ok { value, .. }) if value != event.call)
}

fn is_unconfirmed(event: &Event) -> bool {
    let What::Returned(Answer::Ok { confirmed, .. }) = event.what else {
        return false;
    };
    !confirmed
}

fn is_held(event: &Event) -> bool {
    matches!(&event.what, What::Returned(Answer::Refused(code)) if code == "outcome_unknown")
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { done, not_done } = self.found;
        let out_of_reach: usize = self
            .refused
            .iter()
            .filter(|(code, _)| is_out_of_reach(code))
            .map(|(_, count)| count)
            .sum();
        let refused = self
            .refused
            .iter()
            .map(|(code, count)| format!("{code} {count}"));
        let refused: Vec<String> = refused.collect();
        write!(
            out,
            "{} keys ({} calls, {} % of them while the store was out of reach, and {} % of the {} that met \
             no fault; {} attempts, {} \
             replays, {} results unconfirmed, refused: {}; {} calls died; lookups found {done} \
             effects and {not_done} times none; {} bodies ended after a later one had begun, \
             fences barred {} effects; {} keys held at last, {} with more than one effect)",
            self.keys,
            self.calls,
            100 * out_of_reach / self.calls.max(1),
            100 * self.calm.in_vain / self.calm.all.max(1),
            self.calm.all,
            self.attempts,
            self.replays,
            self.unconfirmed,
            refused.join(", "),
            self.unanswered,
            self.overtaken,
            self.barred,
            self.held,
            self.repeated
        )
    }
}
