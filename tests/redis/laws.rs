//! The laws of every store, on a single server: the newest syntax of scripts, and the oldest.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use idem_core::conformance::{Course, Harness};
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{RedisStore, StoreKey};
use idem_tests::differential;
use idem_tests::long::operations;
use idem_tests::redis::{RedisOptions, RedisServer};

static SERVER: LazyLock<Arc<RedisServer>> =
    LazyLock::new(|| Arc::new(RedisServer::start(RedisOptions::new()).unwrap()));

/// Records on one server.
pub(crate) struct OnOneServer(pub(crate) Arc<RedisServer>);

/// On one that runs for as long as the suite.
fn on_the_shared_server() -> OnOneServer {
    OnOneServer(Arc::clone(&SERVER))
}

impl Harness for OnOneServer {
    type Store = RedisStore;

    async fn fresh_store(&self) -> RedisStore {
        // Only a server that stands still is to be noticed, not one that is busy.
        let patient = RedisBuilder::server(self.0.url()).limit(Duration::from_secs(10));
        patient.connect().await.unwrap()
    }

    async fn corrupt(&self, _: &RedisStore, key: &StoreKey) -> bool {
        self.0.cli(&["SET", key.as_str(), "foreign"]).unwrap();
        true
    }

    async fn time_to_live(&self, _: &RedisStore, key: &StoreKey) -> Option<Duration> {
        match self.0.cli(&["PTTL", key.as_str()]).unwrap().parse::<i64>() {
            Ok(-1) => Some(Duration::MAX),
            Ok(left) => u64::try_from(left).ok().map(Duration::from_millis),
            Err(_) => None,
        }
    }

    fn pushes(&self) -> bool {
        true
    }
}

idem_core::conformance_tests!(on_the_shared_server());

// CASES E11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_random_history_is_the_specification() {
    let course = Course {
        lanes: 32,
        ..Course::of(operations(100_000))
    };
    differential::random("Redis", on_the_shared_server(), course).await;
}
