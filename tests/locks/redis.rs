//! Locks over a Redis server: what is left on it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use idem_core::store::redis::RedisBuilder;
use idem_core::{Idempotency, Key, RedisStore};
use idem_tests::proxy::{Mode, Proxy};
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::wait::{need, until};
use tokio::task::JoinSet;

use crate::rig::LEASE;

/// What the server is told within `time`, as MONITOR shows it.
fn monitored(server: &RedisServer, time: Duration) -> Vec<String> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"MONITOR\r\n").unwrap();
    stream.set_read_timeout(Some(time)).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter(|line| line != "+OK").collect()
}

fn scripts(server: &RedisServer) -> u64 {
    server.calls("evalsha").unwrap()
}

// L02, E13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_quick_pairs_leave_no_renewal_and_no_key_but_marks_that_expire() {
    const LIMIT: Duration = Duration::from_secs(1);
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisBuilder::server(server.url()).limit(LIMIT);
    let store: RedisStore = store.connect().await.unwrap();
    let idem = Idempotency::builder(store).limit(LIMIT).build().unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..50 {
        let idem = idem.clone();
        tasks.spawn(async move {
            for number in 0..200 {
                let key = Key::new("quick", (task, number % 10)).unwrap();
                let lock = idem.lock(key).lease(LEASE).acquire().await.unwrap();
                lock.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(idem.drain(LIMIT).await, 0);
    let mark = LEASE.max(LIMIT * 2);
    for key in server.cli(&["KEYS", "*"]).unwrap().lines() {
        let key = key.split('"').nth(1).unwrap_or(key);
        let left: i64 = server.cli(&["PTTL", key]).unwrap().parse().unwrap();
        // It may have gone since it was listed.
        assert!(
            left == -2 || (0..=mark.as_millis().try_into().unwrap()).contains(&left),
            "{key}: {left}"
        );
    }
    let before = scripts(&server);
    let told = monitored(&server, LEASE);
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(scripts(&server), before);
    until("the marks have gone", mark * 3, || {
        let size = server.cli(&["DBSIZE"])?;
        need(size == "0", size)
    })
    .unwrap();
}

#[tokio::test]
async fn a_renewed_lock_outlives_its_lease_and_a_waiter_is_woken_by_its_release() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let idem = Idempotency::redis(&server.url()).await.unwrap();
    let request = idem.lock(Key::new("test", "A").unwrap()).lease(LEASE);
    let first = request.clone().acquire().await.unwrap();
    let waiting = tokio::spawn(request.clone().wait(LEASE * 10).acquire());
    let (begin, fence) = (Instant::now(), first.fence());
    while begin.elapsed() < LEASE * 3 / 2 {
        tokio::time::sleep(LEASE / 10).await;
        assert!(!first.is_lost() && !waiting.is_finished());
    }
    first.release().await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    assert!(second.fence() > fence && !second.is_takeover());
}

#[tokio::test]
async fn the_lock_of_a_client_that_vanished_is_taken_over_with_a_higher_fence() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let address = server.address();
    // Its start blocks, which a test's own runtime does not allow.
    let proxy = std::thread::spawn(move || Proxy::start(address));
    let proxy = proxy.join().unwrap().unwrap();
    let gone = Idempotency::redis(&proxy.url()).await.unwrap();
    let here = Idempotency::redis(&server.url()).await.unwrap();
    let key = Key::new("test", "A").unwrap();
    let first = gone.lock(key.clone()).lease(LEASE).acquire().await.unwrap();
    proxy.set(Mode::BlackHole);
    let request = here.lock(key).lease(LEASE).wait(LEASE * 10);
    let next = request.acquire().await.unwrap();
    assert!(next.is_takeover() && next.fence() > first.fence());
    assert!(first.is_lost(), "told before the next one came");
}

/// For all of them together the process looks once a second, should a push be lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_waiters_send_two_scripts_each_and_then_wait_for_the_push() {
    const WAITERS: u64 = 50;
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let idem = Idempotency::redis(&server.url()).await.unwrap();
    // So long that it is not renewed meanwhile.
    let request = idem.lock(Key::new("test", "A").unwrap()).lease(LEASE * 60);
    let first = request.clone().acquire().await.unwrap();
    let before = scripts(&server);
    // The first look may come before all have asked.
    let begin = Instant::now();
    let mut waiting = JoinSet::new();
    for _ in 0..WAITERS {
        let request = request.clone().wait(LEASE * 60);
        waiting.spawn(async move { request.acquire().await.unwrap().release().await.unwrap() });
    }
    // One before the subscription and one behind it.
    let asked = before + 2 * WAITERS;
    until("all have asked twice", LEASE * 20, || {
        let scripts = scripts(&server);
        need(scripts >= asked, scripts)
    })
    .unwrap();
    tokio::time::sleep(LEASE * 5 / 2).await;
    let looks = scripts(&server) - asked;
    assert!(looks <= begin.elapsed().as_secs() + 1, "{looks} looks");
    first.release().await.unwrap();
    waiting.join_all().await;
    assert_eq!(server.calls("subscribe").unwrap(), 1);
}
