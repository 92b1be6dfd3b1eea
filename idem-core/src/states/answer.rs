//! What becomes of an event, as a pure function of what was read under the lock.

use super::States;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "only `Applied` and `AlreadyThere` mean that the change is made"]
pub enum Answer<S> {
    /// The row was changed, in the caller's transaction.
    Applied {
        /// The state before.
        from: S,
        /// The version that the row has now.
        version: i64,
    },
    /// This same event changed the row before, maybe long ago: a redelivery. Nothing to do.
    AlreadyThere {
        /// The version that the event gave the row.
        applied_version: i64,
        /// The state now.
        current: S,
        /// The version now.
        version: i64,
    },
    /// No such change from where the row is; nothing was written.
    Illegal {
        /// The state now.
        current: S,
        /// The version now.
        version: i64,
    },
    /// There is no such row.
    NotFound,
    /// Somebody else was first; nothing was written.
    Conflict {
        /// In what way.
        cause: Cause,
        /// The state now.
        current: S,
        /// The version now.
        version: i64,
    },
}

/// What stands in the way of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The row has another version than was expected: read it again, and decide anew.
    Version,
    /// Another event has made this change: a second payment of a paid order, say. Reading again
    /// does not help; somebody has to pay it back.
    OtherEvent,
    /// This event has changed the row before, but to another state.
    OtherTarget,
}

/// What the log says of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) to: i64,
    pub(super) version: i64,
}

/// What is asked, and what was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<S> {
    pub(super) to: S,
    pub(super) expected: Option<i64>,
    pub(super) current: S,
    pub(super) version: i64,
    /// The event's own entry.
    pub(super) logged: Option<Logged>,
    /// Whether any event has brought the row to `to` before.
    pub(super) is_reached: bool,
}

/// `None` is a permission.
pub(super) fn refusal<S: States>(case: &Case<S>) -> Option<Answer<S>> {
    let Case {
        to,
        current,
        version,
        ..
    } = *case;
    let conflict = |cause| {
        Some(Answer::Conflict {
            cause,
            current,
            version,
        })
    };
    if let Some(logged) = case.logged {
        if logged.to != i64::from(to.code()) {
            return conflict(Cause::OtherTarget);
        }
        return Some(Answer::AlreadyThere {
            applied_version: logged.version,
            current,
            version,
        });
    }
    let is_legal = current.can_become(to);
    if !is_legal && (current == to || case.is_reached) {
        return conflict(Cause::OtherEvent);
    }
    if case.expected.is_some_and(|expected| expected != version) {
        return conflict(Cause::Version);
    }
    (!is_legal).then_some(Answer::Illegal { current, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Order {
        Created,
        Paid,
        Shipped,
    }
    use Order::{Created, Paid, Shipped};

    impl States for Order {
        const ALL: &'static [Self] = &[Created, Paid, Shipped];

        fn code(self) -> i16 {
            self as i16
        }

        fn from_code(code: i16) -> Option<Self> {
            Self::ALL.iter().copied().find(|state| state.code() == code)
        }

        fn name(self) -> &'static str {
            "order"
        }

        fn successors(self) -> &'static [Self] {
            match self {
                Created => &[Paid],
                Paid => &[Shipped],
                Shipped => &[],
            }
        }
    }

    /// An order of version 7.
    fn answer(
        current: Order,
        to: Order,
        expected: Option<i64>,
        logged: Option<Order>,
        is_reached: bool,
    ) -> Option<Answer<Order>> {
        let logged = logged.map(|to| Logged {
            to: to.code().into(),
            version: 3,
        });
        refusal(&Case {
            to,
            expected,
            current,
            version: 7,
            logged,
            is_reached,
        })
    }

    fn conflict(cause: Cause, current: Order) -> Answer<Order> {
        Answer::Conflict {
            cause,
            current,
            version: 7,
        }
    }

    #[test]
    fn a_legal_change_of_the_expected_version_is_permitted() {
        assert_eq!(answer(Created, Paid, None, None, false), None);
        assert_eq!(answer(Created, Paid, Some(7), None, false), None);
        // A row that was set back by hand may go the same way again.
        assert_eq!(answer(Created, Paid, None, None, true), None);
    }

    // CASES N35
    #[test]
    fn the_same_event_is_there_wherever_the_row_went_since() {
        for current in [Created, Paid, Shipped] {
            let expected = Some(Answer::AlreadyThere {
                applied_version: 3,
                current,
                version: 7,
            });
            assert_eq!(answer(current, Paid, Some(1), Some(Paid), true), expected);
        }
    }

    #[test]
    fn an_event_has_one_target() {
        let expected = Some(conflict(Cause::OtherTarget, Paid));
        assert_eq!(answer(Paid, Shipped, None, Some(Paid), false), expected);
    }

    // CASES N15
    #[test]
    fn another_event_for_a_state_that_was_reached_is_a_conflict() {
        let at_once = answer(Paid, Paid, None, None, true);
        assert_eq!(at_once, Some(conflict(Cause::OtherEvent, Paid)));
        let unlogged = answer(Paid, Paid, Some(1), None, false);
        assert_eq!(unlogged, Some(conflict(Cause::OtherEvent, Paid)));
        let later = answer(Shipped, Paid, None, None, true);
        assert_eq!(later, Some(conflict(Cause::OtherEvent, Shipped)));
    }

    // CASES Q08, Q10
    #[test]
    fn an_old_version_is_a_conflict_and_a_wrong_source_is_illegal() {
        let expected = Some(conflict(Cause::Version, Created));
        assert_eq!(answer(Created, Paid, Some(6), None, false), expected);
        assert_eq!(answer(Created, Shipped, Some(6), None, false), expected);
        let illegal = Some(Answer::Illegal {
            current: Created,
            version: 7,
        });
        assert_eq!(answer(Created, Shipped, Some(7), None, false), illegal);
    }
}
