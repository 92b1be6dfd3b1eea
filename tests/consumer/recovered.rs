//! Messages whose first handler died, of a function that can look up what it has done.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use idem_core::consumer::{Action, Consumer, MessageId};
use idem_core::{Idempotency, Recovered, idempotent};

use crate::rig::{Failure, RULES, meaning};

type Lookup = Result<Recovered<()>, fmt::Error>;

struct Carrier {
    idem: Idempotency,
    lookups: Mutex<VecDeque<Lookup>>,
    bodies: AtomicU32,
}

impl Carrier {
    fn new(lookups: impl IntoIterator<Item = Lookup>) -> Self {
        Self {
            idem: Idempotency::memory(),
            lookups: Mutex::new(lookups.into_iter().collect()),
            bodies: AtomicU32::new(0),
        }
    }

    fn look_up(&self) -> Ready<Lookup> {
        let lookup = self.lookups.lock().unwrap().pop_front();
        ready(lookup.expect("nobody should have asked"))
    }

    #[idempotent(prefix = "test:recovered", key = "id", engine = self.idem, on_error = "abandon", recover = self.look_up())]
    async fn ship(&self, id: MessageId) -> Result<(), Failure> {
        assert_eq!(id.as_str(), "m-1");
        self.bodies.fetch_add(1, Ordering::Relaxed);
        Err(Failure::Passing)
    }

    /// Delivers the message until something else than a counted delay becomes of it, and says after
    /// how many of them.
    async fn deliver(&self) -> (u32, Action) {
        let consumer = Consumer::new(meaning).rules(RULES);
        let mut delays = 0;
        loop {
            let handled = consumer.handle(Some("m-1"), delays, async |id| self.ship(id).await);
            match handled.await {
                Action::Delay { retries, .. } if retries == delays + 1 => delays = retries,
                other => return (delays, other),
            }
        }
    }
}

/// What killed the first handler is often still there when the second one asks.
#[tokio::test]
async fn a_lookup_that_fails_at_first_only_delays_its_message() {
    let carrier = Carrier::new([
        Err(fmt::Error),
        Ok(Recovered::Unknown),
        Ok(Recovered::Done(())),
    ]);
    assert_eq!(carrier.deliver().await, (3, Action::Ack));
    assert_eq!(carrier.bodies.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_lookup_that_can_never_tell_parks_its_message_at_the_last_retry() {
    let carrier = Carrier::new([Ok(Recovered::Unknown), Err(fmt::Error), Err(fmt::Error)]);
    assert_eq!(carrier.deliver().await, (3, Action::Park));
    assert_eq!(carrier.bodies.load(Ordering::Relaxed), 1);
}
