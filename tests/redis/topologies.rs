//! The same store over a cluster, Sentinels and TLS.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use idem_core::conformance::{self, Course, Harness};
use idem_core::record::{ClaimReply, Fence, Grant, Outcome, RenewReply, Slot, StoreTime};
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{RedisStore, Scan, Store, StoreKey};
use idem_core::{Error, Idempotency, Key, Policy, StoreError, StoreErrorKind};
use idem_tests::cluster::Cluster;
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::sentinel::{MASTER, Sentinels};
use idem_tests::wait::{need, until};

use crate::attempt::{claim, echo, first_call, order, renew, settle};

const PATIENCE: Duration = Duration::from_secs(20);

/// Claims until somebody answers; how long that took, and how often there was an error.
async fn until_claimed(store: &RedisStore, number: u64) -> (ClaimReply, u32) {
    let begin = Instant::now();
    let mut errors = 0;
    loop {
        match try_claim(store, number).await {
            Ok(reply) => return (reply, errors),
            Err(error) => {
                errors += 1;
                assert!(begin.elapsed() < PATIENCE, "{error}");
                assert_ne!(error.kind(), StoreErrorKind::Protocol, "{error}");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn try_claim(store: &RedisStore, number: u64) -> Result<ClaimReply, StoreError> {
    let now = store.now().await?;
    let answer = store.claim(&order(number), &claim(number, now)).await?;
    Ok(answer.reply)
}

fn cluster() -> Cluster {
    Cluster::start(&RedisOptions::new()).unwrap()
}

async fn on(cluster: &Cluster) -> RedisStore {
    let limit = Duration::from_secs(1);
    let builder = RedisBuilder::cluster(cluster.urls()).limit(limit);
    builder.connect().await.unwrap()
}

/// Waits until each record is at a master and at its replica: a fail-over loses nothing then.
fn replicated(cluster: &Cluster, records: u64) {
    until("replicated records", PATIENCE, || {
        let mut copies = 0;
        for node in cluster.nodes() {
            copies += node.cli(&["DBSIZE"])?.parse::<u64>()?;
        }
        need(copies == 2 * records, copies)
    })
    .unwrap();
}

static CLUSTER: LazyLock<Cluster> = LazyLock::new(cluster);

struct OnACluster;

impl Harness for OnACluster {
    type Store = RedisStore;

    async fn fresh_store(&self) -> RedisStore {
        on(&CLUSTER).await
    }

    async fn corrupt(&self, _: &RedisStore, key: &StoreKey) -> bool {
        let slot = CLUSTER.slot_of(key.as_str()).unwrap();
        let master = CLUSTER.master_of(slot).unwrap();
        master.cli(&["SET", key.as_str(), "foreign"]).unwrap();
        true
    }

    fn pushes(&self) -> bool {
        true
    }
}

// CASES N07: keys of one prefix lie in different slots, and nothing cares.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_keeps_the_laws() {
    conformance::run(&OnACluster).await;
    let course = Course {
        lanes: 8,
        ..Course::of(10_000)
    };
    println!(
        "{}",
        conformance::differential(&Arc::new(OnACluster), course).await
    );
}

#[tokio::test]
async fn a_cluster_is_scanned_node_by_node_and_every_record_is_seen() {
    let store = on(&CLUSTER).await;
    let now = store.now().await.unwrap();
    let numbers = 500_000..500_120;
    for number in numbers.clone() {
        first_call(&store, number, now).await;
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut scan = Scan {
        prefix: "shop:order:pay::000000000000000000000000000000000500".to_owned(),
        cursor: None,
        page_size: 20,
    };
    loop {
        let page = store.scan(&scan).await.unwrap().reply;
        for (key, slot) in page.entries {
            assert!(matches!(slot, Slot::Record(_)));
            seen.insert(key);
        }
        match page.next {
            Some(next) => scan.cursor = Some(next),
            None => break,
        }
    }
    let all = numbers.map(|number| order(number).as_str().to_owned());
    assert_eq!(seen, all.collect());
    let nodes = CLUSTER.nodes().iter();
    let scanned = nodes.filter(|node| node.calls("scan").unwrap() > 0);
    assert_eq!(scanned.count(), 3);
}

#[tokio::test]
async fn a_slot_that_moves_is_followed_and_no_call_fails() {
    let cluster = cluster();
    let store = on(&cluster).await;
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
    let slot = cluster.slot_of(order(1).as_str()).unwrap();
    let old = cluster.master_of(slot).unwrap();
    let masters = cluster
        .nodes()
        .iter()
        .filter(|node| node.role().unwrap() == "master");
    let new = masters
        .into_iter()
        .find(|node| node.port() != old.port())
        .unwrap();

    let moving = cluster.begin_move(slot, new).unwrap();
    // Still at the old node; then at the new one, which only serves those who ask for it.
    let reply = try_claim(&store, 1).await.unwrap();
    assert!(matches!(reply, ClaimReply::Completed { .. }), "{reply:?}");
    moving.finish().unwrap();
    let reply = try_claim(&store, 1).await.unwrap();
    assert!(matches!(reply, ClaimReply::Completed { .. }), "{reply:?}");
}

#[tokio::test]
async fn a_cluster_whose_master_dies_answers_again_after_its_fail_over() {
    let cluster = cluster();
    let store = on(&cluster).await;
    let now = store.now().await.unwrap();
    for number in 0..30 {
        first_call(&store, number, now).await;
    }
    replicated(&cluster, 30);
    let dead = cluster.kill_master_of(order(1).as_str()).unwrap();
    let begin = Instant::now();
    let error = try_claim(&store, 1).await;
    assert!(begin.elapsed() < Duration::from_secs(4), "{error:?}");
    let (reply, errors) = until_claimed(&store, 1).await;
    println!("{errors} errors, {:?} until the answer", begin.elapsed());
    assert!(matches!(reply, ClaimReply::Completed { .. }), "{reply:?}");
    dead.restart().unwrap();
}

#[tokio::test]
async fn a_node_that_is_frozen_delays_only_its_own_keys() {
    let cluster = cluster();
    let store = on(&cluster).await;
    let now = store.now().await.unwrap();
    for number in 0..60 {
        first_call(&store, number, now).await;
    }
    let slot_of = |number| cluster.slot_of(order(number).as_str()).unwrap();
    replicated(&cluster, 60);
    let frozen = cluster.master_of(slot_of(0)).unwrap();
    let elsewhere: Vec<u64> = (1..60)
        .filter(|number| cluster.master_of(slot_of(*number)).unwrap().port() != frozen.port())
        .collect();
    frozen.freeze().unwrap();
    a_batch_fails_only_where_it_is_frozen(&store, &elsewhere).await;
    let begin = Instant::now();
    let stuck = tokio::spawn({
        let store = store.clone();
        async move { store.claim(&order(0), &claim(900, now)).await }
    });
    for number in elsewhere {
        let claim = claim(1000 + number, now);
        let answer = store.claim(&order(number), &claim).await.unwrap();
        assert!(matches!(
            answer.reply,
            ClaimReply::Completed { .. } | ClaimReply::Late
        ));
    }
    assert!(
        begin.elapsed() < Duration::from_millis(900),
        "{:?}",
        begin.elapsed()
    );
    let error = stuck.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    let (reply, _) = until_claimed(&store, 0).await;
    assert!(matches!(reply, ClaimReply::Completed { .. }), "{reply:?}");
    frozen.thaw().unwrap();
}

/// Renewals of attempts that ended long ago: those of living nodes are told so.
async fn a_batch_fails_only_where_it_is_frozen(store: &RedisStore, elsewhere: &[u64]) {
    let renewal = |number: &u64| {
        let now = StoreTime::from_micros(u64::MAX / 2);
        let claim = claim(*number, now);
        let grant = Grant {
            fence: Fence::from_u64(1),
            number: 1,
            since: now,
            takeover: false,
            doubt: false,
            token: None,
        };
        (order(*number), renew(&claim, echo(&claim, grant, now)))
    };
    let batch: Vec<_> = [0].iter().chain(elsewhere).map(renewal).collect();
    let mut answers = store.renew_all(&batch).await.into_iter();
    let error = answers.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    for answer in answers {
        assert_eq!(answer.unwrap().reply, RenewReply::Lost);
    }
}

#[tokio::test]
async fn a_cluster_answers_when_only_one_of_the_given_nodes_lives() {
    let dead = RedisServer::start(RedisOptions::new()).unwrap();
    dead.kill().unwrap();
    let urls = [dead.url(), CLUSTER.urls()[4].clone()];
    let store = RedisBuilder::cluster(urls).connect().await.unwrap();
    let mut watch = store.watch(&order(600_000)).await.unwrap();
    let now = store.now().await.unwrap();
    let running = claim(600_000, now);
    let answer = store.claim(&order(600_000), &running).await.unwrap();
    let ClaimReply::Claimed(grant) = answer.reply else {
        panic!("{answer:?}")
    };
    let mut waiting = claim(600_001, now);
    waiting.wait = true;
    store.claim(&order(600_000), &waiting).await.unwrap();
    let settle = settle(&running, Outcome::Failed, echo(&running, grant, answer.now));
    store.settle(&order(600_000), &settle).await.unwrap();
    let told = tokio::time::timeout(PATIENCE, watch.changed());
    told.await.unwrap();
}

#[tokio::test]
async fn a_given_node_that_does_not_answer_keeps_nobody_from_being_woken() {
    let frozen = RedisServer::start(RedisOptions::new()).unwrap();
    frozen.freeze().unwrap();
    let urls = [frozen.url(), CLUSTER.urls()[4].clone()];
    let store = RedisBuilder::cluster(urls).connect().await.unwrap();
    store.watch(&order(600_100)).await.unwrap();
}

/// A call on each of some keys, which a cluster keeps on all its masters.
async fn is_used_by_its_url(url: &str) {
    let idem = Idempotency::redis(url).await.unwrap();
    for number in 0..20_u32 {
        let key = Key::new("order:url", number).unwrap();
        let ran: Result<u32, Error> = idem.run(key, Policy::new(), async || Ok(number)).await;
        assert_eq!(ran.unwrap(), number);
    }
}

#[tokio::test]
async fn a_list_of_urls_is_a_cluster() {
    is_used_by_its_url(&CLUSTER.urls()[..2].join(",")).await;
}

#[tokio::test]
async fn a_url_of_sentinels_leads_to_their_master() {
    let group = Sentinels::start(&RedisOptions::new()).unwrap();
    let urls = group.urls();
    let hosts: Vec<_> = urls
        .iter()
        .map(|url| url.trim_start_matches("redis://").trim_end_matches('/'))
        .collect();
    is_used_by_its_url(&format!("redis+sentinel://{}/{MASTER}", hosts.join(","))).await;
}

#[tokio::test]
async fn a_master_that_sentinels_replace_is_found_again() {
    let group = Sentinels::start(&RedisOptions::new()).unwrap();
    let store = RedisBuilder::sentinel(MASTER, group.urls())
        .limit(Duration::from_secs(1))
        .connect()
        .await
        .unwrap();
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
    let mut watch = store.watch(&order(1)).await.unwrap();
    let replica = &group.servers()[1];
    until("a replicated record", PATIENCE, || {
        let size = replica.cli(&["DBSIZE"])?;
        need(size == "1", size)
    })
    .unwrap();
    group.kill_master().unwrap();
    let begin = Instant::now();
    let (reply, errors) = until_claimed(&store, 1).await;
    println!("{errors} errors, {:?} until the answer", begin.elapsed());
    assert!(matches!(reply, ClaimReply::Completed { .. }), "{reply:?}");
    tokio::time::timeout(PATIENCE, watch.changed())
        .await
        .unwrap();
}

#[tokio::test]
async fn sentinels_that_are_silent_or_know_nothing_do_not_stand_in_the_way() {
    let group = Sentinels::start(&RedisOptions::new().password("secret")).unwrap();
    let frozen = [0, 1].map(|_| RedisServer::start(RedisOptions::new()).unwrap());
    for server in &frozen {
        server.freeze().unwrap();
    }
    let mut urls: Vec<_> = frozen.iter().map(RedisServer::url).collect();
    urls.extend(group.urls());
    let store = RedisBuilder::sentinel(MASTER, urls)
        .master("redis://:secret@master/")
        .connect()
        .await
        .unwrap();
    first_call(&store, 1, store.now().await.unwrap()).await;

    let unknown = RedisBuilder::sentinel("nobody", group.urls())
        .connect()
        .await;
    let error = unknown.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("nobody"), "{error}");
    let wrong = RedisBuilder::sentinel(MASTER, group.urls()).connect().await;
    let error = wrong.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}

#[tokio::test]
async fn each_master_of_a_cluster_is_checked() {
    let store = on(&CLUSTER).await;
    let mut found: Vec<_> = store.check().await.unwrap();
    found.sort_by_key(|finding| finding.code);
    let codes: Vec<_> = found.iter().map(|finding| finding.code).collect();
    let [replicas, nothing] = ["asynchronous_replicas", "no_persistence"];
    assert_eq!(
        codes,
        [replicas, replicas, replicas, nothing, nothing, nothing]
    );
}
