//! What can become of a call.

use std::time::Duration;

use idem_core::StoreErrorKind;

/// A verb of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the verb of its name")]
pub enum Verb {
    Claim,
    Renew,
    Settle,
    Issue,
    Refuse,
    Forget,
    Resolve,
    Peek,
    Scan,
    Now,
    Watch,
    Check,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Fault {
    pub(super) delay: Duration,
    pub(super) gate: Option<Gate>,
    pub(super) yields: bool,
    pub(super) deliveries: u8,
    pub(super) keeps_a_copy: bool,
    pub(super) heard: Heard,
}

/// Where a call is held up until [`open`](super::Faulty::open).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    BeforeTheStore,
    BehindIt,
}

/// What the caller hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    TheAnswer,
    AnError(StoreErrorKind),
    ThatNothingWasSent,
    Nothing,
    APanic,
    Death,
}

impl Fault {
    /// The call works.
    pub const NONE: Self = Self {
        delay: Duration::ZERO,
        gate: None,
        yields: false,
        deliveries: 1,
        keeps_a_copy: false,
        heard: Heard::TheAnswer,
    };

    /// The store is not reached, and the caller hears an error.
    pub const fn fail(kind: StoreErrorKind) -> Self {
        Self {
            deliveries: 0,
            heard: Heard::AnError(kind),
            ..Self::NONE
        }
    }

    /// There is no connection: the caller hears that nothing was sent.
    pub const fn unsent() -> Self {
        Self {
            deliveries: 0,
            heard: Heard::ThatNothingWasSent,
            ..Self::NONE
        }
    }

    /// The store is not reached, and the caller hears nothing.
    pub const fn hang() -> Self {
        Self {
            deliveries: 0,
            heard: Heard::Nothing,
            ..Self::NONE
        }
    }

    /// The store is not reached: its own code panics.
    pub const fn panic() -> Self {
        Self {
            deliveries: 0,
            heard: Heard::APanic,
            ..Self::NONE
        }
    }

    /// The store does it, and the caller hears an error.
    pub const fn lose_the_reply() -> Self {
        Self {
            heard: Heard::AnError(StoreErrorKind::Unavailable),
            ..Self::NONE
        }
    }

    /// The store does it, and the caller hears nothing.
    pub const fn swallow_the_reply() -> Self {
        Self {
            heard: Heard::Nothing,
            ..Self::NONE
        }
    }

    /// The store does it, and this process dies before it hears of it.
    pub const fn die_unheard() -> Self {
        Self {
            heard: Heard::Death,
            ..Self::NONE
        }
    }

    /// The store does it twice; the caller hears the second answer.
    pub const fn deliver_twice() -> Self {
        Self {
            deliveries: 2,
            ..Self::NONE
        }
    }

    /// It stays on the wire until [`deliver_copies`](super::Faulty::deliver_copies), and the caller hears an error.
    pub const fn stay_on_the_wire() -> Self {
        Self::fail(StoreErrorKind::Unavailable).leaving_a_copy()
    }

    /// …and a copy stays on the wire until [`deliver_copies`](super::Faulty::deliver_copies).
    pub const fn leaving_a_copy(mut self) -> Self {
        self.keeps_a_copy = true;
        self
    }

    /// …held up for `delay` before it reaches the store.
    pub const fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// …with one poll more before it reaches the store, and one more before the caller hears.
    pub const fn yielding(mut self) -> Self {
        self.yields = true;
        self
    }

    /// …held up before it reaches the store, until [`open`](super::Faulty::open).
    pub const fn gated(mut self) -> Self {
        self.gate = Some(Gate::BeforeTheStore);
        self
    }

    /// …whose answer is held up until [`open`](super::Faulty::open).
    pub const fn with_gated_answer(mut self) -> Self {
        self.gate = Some(Gate::BehindIt);
        self
    }
}
