//! What the calls run on: memory and a clock that the test moves, or a Redis server.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use idem_core::Idempotency;
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{MemoryStore, RedisStore, Store, memory::ManualClock};
use idem_tests::faulty::Faulty;
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::rig::Rig;
use tokio::sync::SemaphorePermit;

/// An engine, and the faults of its store.
pub(crate) trait Ground: Clone + Send + Sync + 'static {
    type Store: Store;

    /// How many calls are swept at a time.
    const AT_ONCE: usize;

    async fn new() -> Self;

    /// To be had before there is something to do, where many are swept at once and mostly wait.
    async fn turn() -> Option<SemaphorePermit<'static>> {
        None
    }

    fn idem(&self) -> &Idempotency;

    fn store(&self) -> &Faulty<Self::Store>;

    /// Everything that is on the wire is late, if time is the test's own.
    fn let_time_pass(&self) {}

    /// Waits until nothing goes on in the background; panics if something does not end.
    async fn until_idle(&self);
}

impl Ground for Rig {
    type Store = MemoryStore<ManualClock>;

    const AT_ONCE: usize = 1;

    async fn new() -> Self {
        Self::with(|builder| builder.limit(PATIENT))
    }

    fn idem(&self) -> &Idempotency {
        &self.idem
    }

    fn store(&self) -> &Faulty<Self::Store> {
        &self.store
    }

    fn let_time_pass(&self) {
        self.clock.advance(PATIENT * 2);
    }

    async fn until_idle(&self) {
        Self::until_idle(self).await;
    }
}

/// No call is to be late on a machine that is busy.
const PATIENT: Duration = Duration::from_secs(5);

/// Here a give-up takes so long, by the server's clock: what no busy machine needs for a call, and
/// not so long that a sweep would take minutes.
const LIMIT: Duration = Duration::from_secs(5);

static SERVER: LazyLock<RedisServer> =
    LazyLock::new(|| RedisServer::start(RedisOptions::new()).unwrap());

/// One server for the suite, a connection for each call that is dropped.
#[derive(Clone)]
pub(crate) struct OnRedis {
    idem: Idempotency,
    store: Faulty<RedisStore>,
}

impl Ground for OnRedis {
    type Store = RedisStore;

    /// Most of the time is waiting for what can no longer arrive.
    const AT_ONCE: usize = 24;

    async fn new() -> Self {
        let store = RedisBuilder::server(SERVER.url()).limit(LIMIT);
        let store = Faulty::new(store.connect().await.unwrap());
        let idem = Idempotency::builder(store.clone()).limit(LIMIT);
        let idem = idem.build().unwrap();
        Self { idem, store }
    }

    fn idem(&self) -> &Idempotency {
        &self.idem
    }

    fn store(&self) -> &Faulty<RedisStore> {
        &self.store
    }

    async fn until_idle(&self) {
        assert_eq!(self.idem.drain(LIMIT * 10).await, 0);
    }
}

/// A number that no other key has.
pub(crate) fn fresh_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Runs each path on both.
macro_rules! on_both {
    ($($path:ident)*) => {$(
        mod $path {
            use super::$path as path;
            use crate::ground::OnRedis;
            use idem_tests::rig::Rig;

            #[test]
            fn in_memory() {
                path::<Rig>();
            }

            #[test]
            fn in_redis() {
                path::<OnRedis>();
            }
        }
    )*};
}

pub(crate) use on_both;
