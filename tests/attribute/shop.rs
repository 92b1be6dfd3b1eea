//! What the functions of these suites take and give.

use idem_core::store::MemoryStore;
use idem_core::{Error, Idempotency};
use idem_tests::body::{Bodies, Held};
use idem_tests::faulty::Faulty;
use serde::{Deserialize, Serialize};

/// A request, with what the test wants to know of the body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) order_no: String,
    pub(crate) amount: u32,
    pub(crate) coupon: Option<String>,
    pub(crate) bodies: Bodies,
    pub(crate) held: Option<Held>,
}

impl Request {
    pub(crate) fn new(order_no: &str) -> Self {
        Self {
            order_no: order_no.into(),
            ..Self::default()
        }
    }

    /// A request whose body stays until it is let go.
    pub(crate) fn held(order_no: &str) -> (Self, Held) {
        let held = Held::new();
        let request = Self {
            held: Some(held.clone()),
            ..Self::new(order_no)
        };
        (request, held)
    }

    /// What most bodies do: give their number.
    pub(crate) async fn body(&self) -> u32 {
        let number = self.bodies.add();
        if let Some(held) = &self.held {
            held.stay().await;
        }
        number
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) order_no: String,
    pub(crate) number: u32,
}

/// The errors of a service: its own, and the guard's.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PayError {
    Declined(u32),
    TimedOut,
    Busy,
    Final(u32),
    Guard(String),
}

impl From<Error> for PayError {
    fn from(error: Error) -> Self {
        Self::Guard(error.code().to_owned())
    }
}

/// An engine over a store that can be made faulty.
pub(crate) fn faulty() -> (Idempotency, Faulty<MemoryStore>) {
    let store = Faulty::new(MemoryStore::new());
    let limit = std::time::Duration::from_millis(100);
    let idem = Idempotency::builder(store.clone()).limit(limit).build();
    (idem.unwrap(), store)
}

/// Runs `test` with an engine of its own.
pub(crate) async fn with_engine<T>(test: impl AsyncFnOnce(&Idempotency) -> T) -> T {
    let idem = Idempotency::memory();
    idem.scope(test(&idem)).await
}
