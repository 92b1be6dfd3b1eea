//! A master of a cluster is gone for long: nobody else is to notice.

use std::time::{Duration, Instant};

use idem_core::StoreErrorKind;
use idem_core::record::{Fence, Grant, StoreTime};
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{RedisStore, Store};
use idem_tests::cluster::Cluster;
use idem_tests::redis::{RedisOptions, RedisServer};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::attempt::{claim, echo, first_call, order, renew};

const LIMIT: Duration = Duration::from_secs(8);
const SOON: Duration = Duration::from_secs(1);
const NEVER: Duration = Duration::from_hours(1);
const PATIENCE: Duration = Duration::from_mins(1);

/// A cluster, and which orders lie at the master that something is about to happen to.
struct Scene {
    cluster: Cluster,
    now: StoreTime,
    there: Vec<u64>,
    elsewhere: Vec<u64>,
}

impl Scene {
    /// A master that is silent for `fail_over` is replaced, and until then the others go on.
    async fn set(fail_over: Duration) -> Self {
        let cluster = Cluster::start(&RedisOptions::new()).unwrap();
        let fail_over = fail_over.as_millis().to_string();
        for node in cluster.nodes() {
            for (name, value) in [
                ("cluster-node-timeout", &*fail_over),
                ("cluster-require-full-coverage", "no"),
            ] {
                node.cli(&["CONFIG", "SET", name, value]).unwrap();
            }
        }
        let mut scene = Self {
            cluster,
            now: StoreTime::from_micros(0),
            there: Vec::new(),
            elsewhere: Vec::new(),
        };
        let doomed = scene.doomed().port();
        let is_there = |number: &u64| scene.master_of(*number).port() == doomed;
        let (there, elsewhere) = (0..30).partition(is_there);
        (scene.there, scene.elsewhere) = (there, elsewhere);
        scene.now = scene.store(LIMIT).await.now().await.unwrap();
        scene
    }

    async fn store(&self, limit: Duration) -> RedisStore {
        let builder = RedisBuilder::cluster(self.cluster.urls());
        builder.limit(limit).connect().await.unwrap()
    }

    fn doomed(&self) -> &RedisServer {
        self.master_of(0)
    }

    fn master_of(&self, number: u64) -> &RedisServer {
        let slot = self.cluster.slot_of(order(number).as_str()).unwrap();
        self.cluster.master_of(slot).unwrap()
    }

    /// Claims that are given up at half of the limit, as an engine does, `times` by each of four.
    fn callers(&self, store: &RedisStore, times: u32) -> JoinSet<()> {
        let mut callers = JoinSet::new();
        for number in self.there.iter().take(4).copied() {
            let (store, claim) = (store.clone(), claim(number, self.now));
            callers.spawn(async move {
                let key = order(number);
                for _ in 0..times {
                    let answer = timeout(LIMIT / 2, store.claim(&key, &claim)).await;
                    assert!(!matches!(answer, Ok(Ok(_))), "{answer:?}");
                }
            });
        }
        callers
    }

    /// Claims elsewhere until `until` ends; the longest that one of them took.
    async fn others(&self, store: &RedisStore, mut until: JoinSet<()>) -> Duration {
        let mut longest = Duration::ZERO;
        for number in self.elsewhere.iter().cycle() {
            let begin = Instant::now();
            let claim = claim(*number, self.now);
            store.claim(&order(*number), &claim).await.unwrap();
            longest = longest.max(begin.elapsed());
            if let Some(ended) = until.try_join_next() {
                ended.unwrap();
            }
            if until.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        longest
    }
}

fn connections(node: &RedisServer) -> u64 {
    node.info("total_connections_received")
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_cluster_is_reached_while_masters_of_it_are_dead() {
    let scene = Scene::set(NEVER).await;
    let healthy = scene.elsewhere[0];
    let living = scene.master_of(healthy).port();
    for node in scene.cluster.nodes() {
        if node.role().unwrap() == "master" && node.port() != living {
            node.kill().unwrap();
        }
    }
    for number in 0..20 {
        let store = scene.store(PATIENCE).await;
        let claim = claim(number, scene.now);
        store.claim(&order(healthy), &claim).await.unwrap();
    }
}

#[tokio::test]
async fn those_who_call_a_frozen_master_leave_the_connection_to_the_others() {
    let scene = Scene::set(NEVER).await;
    let store = scene.store(LIMIT).await;
    let healthy = scene.master_of(scene.elsewhere[0]);
    let doomed = scene.doomed();
    doomed.freeze().unwrap();
    let before = connections(healthy);

    let longest = scene.others(&store, scene.callers(&store, 2)).await;
    // As long as a look takes, and a half.
    assert!(longest < LIMIT * 3 / 8, "{longest:?}");
    // A heartbeat with several keys there.
    let renewals = scene.there.iter().map(|number| {
        let grant = Grant {
            fence: Fence::from_u64(1),
            number: 1,
            since: scene.now,
            takeover: false,
            doubt: false,
            token: None,
        };
        let claim = claim(*number, scene.now);
        (
            order(*number),
            renew(&claim, echo(&claim, grant, scene.now)),
        )
    });
    for answer in store.renew_all(&renewals.collect::<Vec<_>>()).await {
        assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
    scene.others(&store, JoinSet::new()).await;
    // The asking for them is one.
    assert_eq!(connections(healthy), before + 1);
}

#[tokio::test]
async fn a_master_that_was_replaced_is_found_while_the_others_are_called() {
    a_replaced_master_is_found_by_callers_with(LIMIT / 2).await;
}

#[tokio::test]
async fn a_master_that_was_replaced_is_found_by_callers_with_short_patience() {
    a_replaced_master_is_found_by_callers_with(LIMIT / 10).await;
}

async fn a_replaced_master_is_found_by_callers_with(patience: Duration) {
    let scene = Scene::set(SOON).await;
    let store = scene.store(LIMIT).await;
    first_call(&store, 0, scene.now).await;
    scene.doomed().wait_copied().unwrap();
    scene.doomed().freeze().unwrap();
    let mut caller = JoinSet::new();
    caller.spawn({
        let (store, claim) = (store.clone(), claim(0, scene.now));
        async move {
            let (key, begin) = (order(0), Instant::now());
            while !matches!(
                timeout(patience, store.claim(&key, &claim)).await,
                Ok(Ok(_))
            ) {
                assert!(begin.elapsed() < PATIENCE);
            }
        }
    });
    // A fail-over may disturb them, too.
    for number in scene.elsewhere.iter().cycle() {
        let _ = store
            .claim(&order(*number), &claim(*number, scene.now))
            .await;
        if let Some(found) = caller.try_join_next() {
            return found.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_cluster_that_answers_nothing_is_dialled_again() {
    let scene = Scene::set(NEVER).await;
    let store = scene.store(LIMIT).await;
    let healthy = scene.master_of(scene.elsewhere[0]);
    let before = connections(healthy);
    for node in scene.cluster.nodes() {
        node.freeze().unwrap();
    }
    scene.callers(&store, 2).join_all().await;
    for node in scene.cluster.nodes() {
        node.thaw().unwrap();
    }
    scene.others(&store, JoinSet::new()).await;
    assert!(connections(healthy) > before + 1);
}
