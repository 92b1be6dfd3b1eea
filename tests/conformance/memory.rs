//! The store in this process.

use std::time::Duration;

use idem_core::conformance::{Course, Harness};
use idem_core::store::StoreKey;
use idem_core::store::memory::{ManualClock, MemoryStore};
use idem_tests::differential;
use idem_tests::long::operations;

/// On a clock that the laws move: no law waits for real time.
#[derive(Default)]
struct Simulated {
    clock: ManualClock,
}

impl Harness for Simulated {
    type Store = MemoryStore<ManualClock>;

    async fn fresh_store(&self) -> Self::Store {
        MemoryStore::with_clock(self.clock.clone())
    }

    async fn pass_time(&self, time: Duration) {
        self.clock.advance(time);
    }

    async fn corrupt(&self, store: &Self::Store, key: &StoreKey) -> bool {
        store.damage(key);
        true
    }

    fn pushes(&self) -> bool {
        true
    }
}

mod on_a_manual_clock {
    use super::Simulated;

    idem_core::conformance_tests!(Simulated::default());
}

/// On the machine's clock, as in production.
struct Real;

impl Harness for Real {
    type Store = MemoryStore;

    async fn fresh_store(&self) -> Self::Store {
        MemoryStore::new()
    }

    fn pace(&self) -> Duration {
        Duration::from_millis(40)
    }

    async fn corrupt(&self, store: &Self::Store, key: &StoreKey) -> bool {
        store.damage(key);
        true
    }

    fn pushes(&self) -> bool {
        true
    }
}

mod on_the_system_clock {
    use super::Real;

    idem_core::conformance_tests!(Real);
}

#[tokio::test]
async fn random_histories_agree_with_the_specification() {
    let course = Course::of(operations(200_000));
    let report = differential::random("memory", Simulated::default(), course).await;
    assert_eq!(
        report.near_deadline, 0,
        "this store expires to the microsecond"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_histories_in_real_time_agree_with_the_specification() {
    let course = Course {
        lanes: 64,
        ..Course::of(20_000)
    };
    let report = differential::random("memory in real time", Real, course).await;
    assert_eq!(
        report.near_deadline, 0,
        "this store expires to the microsecond"
    );
}
