//! What may stand at a key, by the specification.

use std::time::Duration;

use crate::record::{Op, Record, Reply, Slot, StoreTime, step};

/// A server expires by whole milliseconds of a clock that it reads now and then: so long around a
/// deadline, or for as long as the call took, if that is longer, a record may be there or not.
const COARSE: Duration = Duration::from_millis(2);

/// The store gave what no possible slot gives.
#[derive(Debug)]
pub(super) struct Differs;

/// The slots that agree with everything the store has answered: one, but for records that were
/// met at their deadline.
#[derive(Debug)]
pub(super) struct Model {
    possible: Vec<Slot>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            possible: vec![Slot::Absent],
        }
    }
}

impl Model {
    pub(super) fn damaged() -> Self {
        Self {
            possible: vec![Slot::Damaged],
        }
    }

    pub(super) fn best_guess(&self) -> &Slot {
        self.possible.first().unwrap_or(&Slot::Absent)
    }

    pub(super) fn expected(&self, op: &Op, now: StoreTime) -> Reply {
        step(self.best_guess().clone(), op, now).1
    }

    /// Takes the operation, if its reply is a possible one; says whether that needed a record to
    /// be seen across its deadline.
    pub(super) fn apply(
        &mut self,
        op: &Op,
        now: StoreTime,
        took: Duration,
        reply: &Reply,
    ) -> Result<bool, Differs> {
        self.narrow(now, took, |view| {
            let (after, expected) = step(view.slot.clone(), op, now);
            (expected == *reply).then(|| view.restored(after))
        })
    }

    /// Takes what the store shows, if it is a possible view.
    pub(super) fn observe(
        &mut self,
        seen: &Slot,
        now: StoreTime,
        took: Duration,
    ) -> Result<bool, Differs> {
        self.narrow(now, took, |view| {
            let shown = view.restored(view.slot.clone().visible(now));
            (shown == *seen).then(|| view.restored(view.slot.clone()))
        })
    }

    /// Keeps what agrees with the store.
    fn narrow(
        &mut self,
        now: StoreTime,
        took: Duration,
        agree: impl Fn(&View) -> Option<Slot>,
    ) -> Result<bool, Differs> {
        let coarse = COARSE.max(took);
        let possible: Vec<Slot> = self
            .possible
            .drain(..)
            .map(|slot| slot.live(now.before(coarse)))
            .collect();
        let mut left: Vec<Slot> = Vec::new();
        let mut keep = |view: View| {
            if let Some(slot) = agree(&view)
                && !left.contains(&slot)
            {
                left.push(slot);
            }
            !left.is_empty()
        };
        let mut is_exact = false;
        for slot in &possible {
            is_exact = keep(View::exact(slot));
        }
        for view in possible
            .iter()
            .filter_map(|slot| View::across(slot, now, coarse))
        {
            keep(view);
        }
        if left.is_empty() {
            self.possible = possible;
            return Err(Differs);
        }
        self.possible = left;
        Ok(!is_exact)
    }
}

/// A slot as an operation may have met it.
struct View {
    slot: Slot,
    /// The deadline of a record that was met behind it, and that has none in `slot`.
    deadline: Option<StoreTime>,
}

impl View {
    const NO_DEADLINE: StoreTime = StoreTime::from_micros(u64::MAX);

    fn exact(slot: &Slot) -> Self {
        Self {
            slot: slot.clone(),
            deadline: None,
        }
    }

    /// The record on the other side of its deadline, if that is near.
    fn across(slot: &Slot, now: StoreTime, coarse: Duration) -> Option<Self> {
        let Slot::Record(record) = slot else {
            return None;
        };
        let deadline = record.expires_at;
        let is_near = deadline.since(now).max(now.since(deadline)) <= coarse;
        is_near.then(|| {
            if deadline.has_passed(now) {
                Self {
                    slot: Slot::Record(Record {
                        expires_at: Self::NO_DEADLINE,
                        ..record.clone()
                    }),
                    deadline: Some(deadline),
                }
            } else {
                Self::exact(&Slot::Absent)
            }
        })
    }

    /// What became of the slot, with its deadline given back wherever that is still kept.
    fn restored(&self, after: Slot) -> Slot {
        match (after, self.deadline) {
            (Slot::Record(mut record), Some(deadline)) => {
                if record.expires_at == Self::NO_DEADLINE {
                    record.expires_at = deadline;
                }
                if record.closed_until == Some(Self::NO_DEADLINE) {
                    record.closed_until = Some(deadline);
                }
                Slot::Record(record)
            }
            (after, _) => after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Fence, Owner, State, Subject, TokenBinding};

    const DEADLINE: StoreTime = StoreTime::from_micros(1_000_000_000);
    const MILLISECOND: Duration = Duration::from_millis(1);

    fn token() -> Slot {
        let subject = Subject::of("alice");
        Slot::Record(Record {
            owner: Owner::NOBODY,
            fence: Fence::from_u64(1),
            attempt: 0,
            fingerprint: None,
            token: Some(TokenBinding {
                subject,
                until: DEADLINE,
            }),
            closed_until: None,
            state: State::Issued,
            expires_at: DEADLINE,
        })
    }

    fn model() -> Model {
        Model {
            possible: vec![token()],
        }
    }

    #[test]
    fn a_record_may_be_gone_shortly_before_its_deadline() {
        let seen = model().observe(&Slot::Absent, DEADLINE.before(MILLISECOND), Duration::ZERO);
        assert!(matches!(seen, Ok(true)), "{seen:?}");
    }

    #[test]
    fn a_record_may_be_there_shortly_after_its_deadline_with_that_deadline() {
        let mut model = model();
        let seen = model.observe(&token(), DEADLINE.after(MILLISECOND), Duration::ZERO);
        assert!(matches!(seen, Ok(true)), "{seen:?}");
        assert_eq!(*model.best_guess(), token());
    }

    #[test]
    fn what_the_specification_says_is_not_counted() {
        let before = model().observe(&token(), DEADLINE.before(MILLISECOND), Duration::ZERO);
        assert!(matches!(before, Ok(false)), "{before:?}");
        let after = model().observe(&Slot::Absent, DEADLINE.after(MILLISECOND), Duration::ZERO);
        assert!(matches!(after, Ok(false)), "{after:?}");
    }

    #[test]
    fn far_from_the_deadline_nothing_else_is_taken() {
        let far = MILLISECOND * 3;
        let gone = model().observe(&Slot::Absent, DEADLINE.before(far), Duration::ZERO);
        assert!(gone.is_err());
        let still_there = model().observe(&token(), DEADLINE.after(far), Duration::ZERO);
        assert!(still_there.is_err());
    }

    #[test]
    fn nothing_is_nearer_to_the_deadline_than_the_call_took() {
        let took = MILLISECOND * 5;
        let slow = model().observe(&token(), DEADLINE.after(MILLISECOND * 4), took);
        assert!(matches!(slow, Ok(true)), "{slow:?}");
        let slow = model().observe(&token(), DEADLINE.after(MILLISECOND * 6), took);
        assert!(slow.is_err());
    }
}
