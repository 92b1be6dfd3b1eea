//! The laws of every store, on a single server: the newest syntax of scripts, and the oldest.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use idem_core::conformance::{self, Course, Harness};
use idem_core::store::{RedisStore, StoreKey};
use idem_tests::redis::{RedisOptions, RedisServer};

static SERVER: LazyLock<RedisServer> =
    LazyLock::new(|| RedisServer::start(RedisOptions::new()).unwrap());

/// Records on a server that runs for as long as the suite.
struct OnOneServer;

impl Harness for OnOneServer {
    type Store = RedisStore;

    async fn fresh_store(&self) -> RedisStore {
        RedisStore::connect(&SERVER.url()).await.unwrap()
    }

    async fn corrupt(&self, _: &RedisStore, key: &StoreKey) -> bool {
        SERVER.cli(&["SET", key.as_str(), "foreign"]).unwrap();
        true
    }

    async fn time_to_live(&self, _: &RedisStore, key: &StoreKey) -> Option<Duration> {
        match SERVER.cli(&["PTTL", key.as_str()]).unwrap().parse::<i64>() {
            Ok(-1) => Some(Duration::MAX),
            Ok(left) => u64::try_from(left).ok().map(Duration::from_millis),
            Err(_) => None,
        }
    }

    fn pushes(&self) -> bool {
        true
    }
}

idem_core::conformance_tests!(OnOneServer);

// CASES E11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_random_history_is_the_specification() {
    let course = Course {
        lanes: 8,
        ..Course::of(100_000)
    };
    let report = conformance::differential(&Arc::new(OnOneServer), course).await;
    println!("{report}");
}
