//! An attempt that has lost its record to another, seen from its message.

use std::sync::Arc;
use std::time::Duration;

use idem_core::consumer::{Action, Consumer, Rules};
use idem_core::engine::Builder;
use idem_core::record::Status;
use idem_core::store::memory::ManualClock;
use idem_core::{Idempotency, Key, MemoryStore, Policy};
use idem_tests::body::{Bodies, Held};

use crate::rig::{Failure, meaning};

const LEASE: Duration = Duration::from_secs(1);
const RERUN: Policy = Policy::new().rerun_abandoned().lease(LEASE);

struct Scene {
    consumer: Consumer<Failure>,
    idem: Idempotency,
    clock: ManualClock,
    held: Held,
    bodies: Bodies,
}

impl Scene {
    fn new() -> Arc<Self> {
        Self::with(Rules::new(), |builder| builder)
    }

    fn with(rules: Rules, set: fn(Builder) -> Builder) -> Arc<Self> {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(clock.clone());
        Arc::new(Self {
            consumer: Consumer::new(meaning).rules(rules),
            idem: set(Idempotency::builder(store)).build().unwrap(),
            clock,
            held: Held::new(),
            bodies: Bodies::default(),
        })
    }

    /// One delivery of the message: the first body stays until it is let go, and then gives
    /// `first`.
    async fn deliver(&self, policy: Policy, first: fn() -> Result<(), Failure>) -> Action {
        let call = async |id| {
            let key = Key::new("test:message", id)?;
            let body = async || match self.bodies.add() {
                1 => {
                    self.held.stay().await;
                    first()
                }
                _ => Ok(()),
            };
            self.idem.run(key, policy, body).await
        };
        self.consumer.handle(Some("m-1"), 0, call).await
    }

    /// The first delivery's lease ends while its body runs, and the second comes. What becomes of
    /// both.
    async fn overtake(
        self: &Arc<Self>,
        policy: Policy,
        first: fn() -> Result<(), Failure>,
    ) -> (Action, Action) {
        let scene = self.clone();
        let late = tokio::spawn(async move { scene.deliver(policy, first).await });
        self.held.entered().await;
        self.clock.advance(LEASE);
        let second = self.deliver(policy, first).await;
        self.held.release();
        (late.await.unwrap(), second)
    }

    async fn status(&self) -> Status {
        let key = Key::new("test:message", "m-1").unwrap();
        self.idem.peek(&key).await.unwrap().unwrap().status
    }
}

// V05, E15
#[tokio::test]
async fn a_late_failure_leaves_the_winners_success_and_its_message_comes_to_nothing() {
    let scene = Scene::new();
    let (late, second) = scene.overtake(RERUN, || Err(Failure::Passing)).await;
    assert_eq!(second, Action::Ack);
    assert!(matches!(late, Action::Delay { retries: 1, .. }), "{late:?}");
    assert_eq!(scene.status().await, Status::Success);
    let again = scene.deliver(RERUN, || Ok(())).await;
    assert_eq!((again, scene.bodies.count()), (Action::Ack, 2));
}

// V05, E15
#[tokio::test]
async fn a_late_success_is_the_winners_and_is_acknowledged() {
    let scene = Scene::new();
    let (late, second) = scene.overtake(RERUN, || Ok(())).await;
    assert_eq!((late, second), (Action::Ack, Action::Ack));
    assert_eq!(scene.status().await, Status::Success);
}

/// With no retry left: counted as a failure, it would be dead.
#[tokio::test]
async fn a_late_success_whose_winner_has_no_result_to_give_is_acknowledged() {
    for policy in [RERUN, RERUN.reject_duplicates()] {
        let scene = Scene::with(Rules::new().retries(0), |builder| {
            builder.max_result_bytes(1)
        });
        let (late, second) = scene.overtake(policy, || Ok(())).await;
        assert_eq!((late, second), (Action::Ack, Action::Ack), "{policy:?}");
    }
}

#[tokio::test]
async fn at_hold_the_second_message_is_parked_and_finds_the_first_ones_success() {
    let hold = Policy::new().lease(LEASE);
    let scene = Scene::new();
    let (late, second) = scene.overtake(hold, || Ok(())).await;
    assert_eq!((late, second), (Action::Ack, Action::Park));
    let again = scene.deliver(hold, || Ok(())).await;
    assert_eq!((again, scene.bodies.count()), (Action::Ack, 1));
}
