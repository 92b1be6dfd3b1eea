//! One store in many runtimes, each of which may end.

use std::time::Duration;

use idem_core::StoreErrorKind;
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{RedisStore, Store};
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::wait::{need, until};
use tokio::runtime::Runtime;

use crate::attempt::{first_call, order};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn clients(server: &RedisServer) -> usize {
    server.info("connected_clients").unwrap().parse().unwrap()
}

// CASES N33
#[test]
fn a_store_goes_on_when_the_runtime_it_was_made_in_has_ended() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let alone = clients(&server);
    let first = runtime();
    let store = first.block_on(RedisStore::connect(&server.url())).unwrap();
    for number in 0..5 {
        runtime().block_on(async {
            let now = store.now().await.unwrap();
            first_call(&store, number, now).await;
        });
    }
    drop(first);
    runtime().block_on(async {
        let now = store.now().await.unwrap();
        first_call(&store, 9, now).await;
    });
    // Each runtime takes its connection with it.
    until("closed connections", Duration::from_secs(5), || {
        let left = clients(&server);
        need(left == alone, left)
    })
    .unwrap();
}

#[test]
fn a_store_is_built_without_a_runtime_and_refuses_calls_without_one() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisBuilder::server(server.url()).build().unwrap();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(answer) = std::pin::pin!(store.now()).poll(&mut context) else {
        panic!("a call without a runtime waits for something")
    };
    assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::Misconfigured);
    runtime().block_on(store.now()).unwrap();
}

#[test]
fn two_runtimes_at_once_have_a_connection_each() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let alone = clients(&server);
    let (first, second) = (runtime(), runtime());
    let store = first.block_on(RedisStore::connect(&server.url())).unwrap();
    second.block_on(store.now()).unwrap();
    first.block_on(store.now()).unwrap();
    assert_eq!(clients(&server), alone + 2);
    drop(store);
    // Without the store the connections go, though the runtimes stay.
    first.block_on(tokio::task::yield_now());
    second.block_on(tokio::task::yield_now());
    until("closed connections", Duration::from_secs(5), || {
        let left = clients(&server);
        need(left == alone, left)
    })
    .unwrap();
}

#[test]
fn a_watch_outlives_the_runtime_of_an_earlier_one() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let first = runtime();
    let store = first.block_on(RedisStore::connect(&server.url())).unwrap();
    let _watch = first.block_on(store.watch(&order(1))).unwrap();
    drop(first);
    let second = runtime();
    second.block_on(async {
        let mut watch = store.watch(&order(2)).await.unwrap();
        let channel = format!("idem:wake:{}", order(2).as_str());
        server.cli(&["PUBLISH", channel.as_str(), ""]).unwrap();
        let told = tokio::time::timeout(Duration::from_secs(5), watch.changed());
        told.await.unwrap();
    });
}

#[test]
fn nonsense_is_refused_before_anything_is_dialled() {
    let refused = [
        RedisBuilder::server("http://127.0.0.1/"),
        RedisBuilder::server("not a url"),
        RedisBuilder::server("redis://127.0.0.1/").limit(Duration::ZERO),
        RedisBuilder::cluster(Vec::<String>::new()),
        RedisBuilder::sentinel("main", Vec::<String>::new()),
        RedisBuilder::sentinel("main", ["redis://127.0.0.1/"]).master("nowhere"),
    ];
    for builder in refused {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    }
}

#[test]
fn a_call_in_a_runtime_that_has_ended_holds_up_nobody() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisBuilder::server(server.url()).build().unwrap();
    let ended = runtime();
    let handle = ended.handle().clone();
    drop(ended);
    let calling = {
        let store = store.clone();
        std::thread::spawn(move || handle.block_on(store.now()))
    };
    // An error, or a panic of the runtime's own timer; never an answer, and never for ever.
    let answer = calling.join();
    assert!(!matches!(answer, Ok(Ok(_))), "{answer:?}");
    runtime().block_on(store.now()).unwrap();
}
