//! A history, read call by call.

use std::collections::BTreeMap;

use super::event::{Answer, End, Event, Finding, What};
use super::journal::{CALLS_PER_WORKER, SWEEPER};

/// Where in a history something stands, and when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) place: usize,
    pub(super) at: u64,
}

/// All that is known of one call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) invoked: Point,
    pub(super) begun: Vec<(Point, u64)>,
    pub(super) passed: Option<Point>,
    pub(super) effects: Vec<Point>,
    /// When it began to ask whether it holds its lock, and was told so.
    pub(super) held: Vec<u64>,
    pub(super) ended: Option<(Point, End)>,
    pub(super) committing: Option<Point>,
    /// Its lookups, each with the fence of the attempt that asked.
    pub(super) found: Vec<(Point, u64, Finding)>,
    pub(super) returned: Option<(Point, Answer)>,
}

impl Call {
    fn new(number: u64, invoked: Point) -> Self {
        Self {
            number,
            invoked,
            begun: Vec::new(),
            passed: None,
            effects: Vec::new(),
            held: Vec::new(),
            ended: None,
            committing: None,
            found: Vec::new(),
            returned: None,
        }
    }

    fn take(&mut self, point: Point, what: &What) {
        match what {
            What::Invoked | What::Barred => {}
            What::Begun { fence } => self.begun.push((point, *fence)),
            What::Passed => self.passed = Some(point),
            What::Happened => self.effects.push(point),
            What::Held { asked } => self.held.push(*asked),
            What::Ended(end) => self.ended = Some((point, *end)),
            What::Committing => self.committing = Some(point),
            What::Found { fence, finding } => self.found.push((point, *fence, *finding)),
            What::Returned(answer) => self.returned = Some((point, answer.clone())),
        }
    }

    /// Its first body, and that attempt's fence.
    pub(super) fn attempt(&self) -> Option<(Point, u64)> {
        self.begun.first().copied()
    }

    pub(super) fn has_effect(&self) -> bool {
        !self.effects.is_empty()
    }

    /// The result that its caller was given, and whether the store had it.
    pub(super) fn result(&self) -> Option<(Point, u64, bool)> {
        match self.returned {
            Some((point, Answer::Ok { value, confirmed })) => Some((point, value, confirmed)),
            _ => None,
        }
    }

    pub(super) fn ended_so(&self, end: End) -> Option<Point> {
        self.ended
            .filter(|(_, how)| *how == end)
            .map(|(point, _)| point)
    }

    pub(super) fn is_of_the_sweeper(&self) -> bool {
        self.number / CALLS_PER_WORKER == SWEEPER
    }
}

/// The calls of a history, in the order in which they were made.
pub(super) fn calls(events: &[Event]) -> Vec<Call> {
    let mut calls: BTreeMap<u64, Call> = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        let point = Point {
            place,
            at: event.at,
        };
        calls
            .entry(event.call)
            .or_insert_with(|| Call::new(event.call, point))
            .take(point, &event.what);
    }
    let mut calls: Vec<Call> = calls.into_values().collect();
    calls.sort_by_key(|call| call.invoked.place);
    calls
}
