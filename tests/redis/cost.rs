//! What a record and a call cost.

use idem_core::record::ClaimReply;
use idem_core::store::{RedisStore, Store};
use idem_tests::redis::{RedisOptions, RedisServer};

use tokio::task::JoinSet;

use crate::attempt::{claim, first_call, order, proxy};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_record_takes_at_most_450_bytes() {
    const LANES: u64 = 50;
    const RECORDS: u64 = 100_000;
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    first_call(&store, RECORDS, store.now().await.unwrap()).await;
    let before = used_memory(&server);
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let store = store.clone();
        lanes.spawn(async move {
            for number in (lane..RECORDS).step_by(usize::try_from(LANES).unwrap()) {
                let now = store.now().await.unwrap();
                first_call(&store, number, now).await;
            }
        });
    }
    lanes.join_all().await;
    let each = (used_memory(&server) - before) / RECORDS;
    println!("{each} bytes a record");
    assert!(each <= 450, "{each} bytes a record");
}

fn used_memory(server: &RedisServer) -> u64 {
    server.info("used_memory").unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_first_call_is_two_commands_and_600_bytes_and_a_duplicate_one_and_200() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let proxy = proxy(server.address());
    let store = RedisStore::connect(&proxy.url()).await.unwrap();
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;

    let (bytes, calls) = (proxy.bytes(), server.calls("evalsha").unwrap());
    first_call(&store, 2, now).await;
    let sent = proxy.bytes() - bytes;
    assert!(sent <= 600, "{sent} bytes a first call");
    assert_eq!(server.calls("evalsha").unwrap() - calls, 2);

    let (bytes, calls) = (proxy.bytes(), server.calls("evalsha").unwrap());
    let answer = store.claim(&order(2), &claim(3, now)).await.unwrap();
    assert!(matches!(answer.reply, ClaimReply::Completed { .. }));
    let sent_again = proxy.bytes() - bytes;
    assert!(sent_again <= 200, "{sent_again} bytes a duplicate");
    assert_eq!(server.calls("evalsha").unwrap() - calls, 1);
    println!("{sent} bytes a first call, {sent_again} a duplicate");
}
