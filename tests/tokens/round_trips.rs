//! What a wrong token costs: a time that says nothing about it.

use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use idem_core::store::{RedisStore, Store};
use idem_core::{Error, Policy};
use idem_tests::body::{Bodies, until};
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::round_trips::counting;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::rig::{
    ALICE, MALLORY, Rig, is_rejected, mariadb_url, on_mariadb, on_postgres, postgres_url,
};

/// Each wrong token costs what an unknown one does, which is more than nothing. `so_far` says what
/// was asked of the server when all that was begun has been done.
async fn costs_what_an_unknown_one_does<S: Store>(rig: Rig<S>, so_far: impl AsyncFn() -> usize) {
    let brief = rig.tokens.issue(ALICE, Duration::from_millis(20));
    let expired = brief.await.unwrap();
    let (used, foreign, done) = (rig.issue().await, rig.issue().await, rig.issue().await);
    rig.tokens.consume(&used, ALICE).await.unwrap();
    rig.submit(&done, &Bodies::default()).await.unwrap();
    until("it has expired", async || {
        rig.record(&expired).await.is_none()
    })
    .await;
    let wrong = [
        ("unknown", "00112233445566778899aabbccddeeff", ALICE),
        ("used", used.as_str(), ALICE),
        ("expired", expired.as_str(), ALICE),
        ("foreign", foreign.as_str(), MALLORY),
        ("foreign and done", done.as_str(), MALLORY),
    ];
    let mut cost = Vec::new();
    // In the first round statements are prepared.
    for _ in 0..2 {
        cost.clear();
        for (what, token, subject) in wrong {
            let before = so_far().await;
            let never = async || -> Result<u32, Error> { panic!("the body ran") };
            let refused = rig
                .tokens
                .run(Some(token), subject, Policy::new(), never)
                .await;
            assert!(is_rejected(&refused), "{what}: {refused:?}");
            cost.push((what, so_far().await - before));
        }
    }
    let before = so_far().await;
    let nothing = so_far().await - before;
    let (_, unknown) = cost[0];
    assert!(unknown > nothing, "it did not ask");
    assert!(cost.iter().all(|(_, wrong)| *wrong == unknown), "{cost:?}");
}

// N28
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_token_waits_for_postgresql_as_often_as_an_unknown_one() {
    let options = PgConnectOptions::from_str(&postgres_url()).unwrap();
    let (port, count) = counting(options.get_port()).await;
    // Of one connection whoever asks next waits for the end of all that was asked before.
    let pool = PgPoolOptions::new().max_connections(1);
    let pool = pool.connect_with(options.port(port)).await.unwrap();
    let so_far = async || {
        sqlx::query("SELECT 1").execute(&pool).await.unwrap();
        // Before it is, the pool asks the server for a sign of life.
        until("it is given back", async || pool.num_idle() == 1).await;
        count.load(Ordering::Relaxed)
    };
    costs_what_an_unknown_one_does(on_postgres(pool.clone()).await, so_far).await;
}

// N28
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_token_asks_mariadb_as_much_as_an_unknown_one() {
    let options = MySqlConnectOptions::from_str(&mariadb_url()).unwrap();
    let pool = MySqlPoolOptions::new().max_connections(1);
    let pool = pool.connect_with(options).await.unwrap();
    // Statements and prepared ones, of the only session.
    let so_far = async || {
        let status = sqlx::query_as("SHOW SESSION STATUS LIKE 'Questions'");
        let (_, count): (String, String) = status.fetch_one(&pool).await.unwrap();
        count.parse().unwrap()
    };
    costs_what_an_unknown_one_does(on_mariadb(pool.clone()).await, so_far).await;
}

// N28
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_token_asks_redis_as_often_as_an_unknown_one() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let rig = Rig::new(RedisStore::connect(&server.url()).await.unwrap());
    let so_far = async || {
        let stats = server.cli(&["INFO", "commandstats"]).unwrap();
        let scripts = stats
            .lines()
            .filter(|line| line.starts_with("cmdstat_eval"));
        let calls = scripts.filter_map(|line| line.split_once("calls=")?.1.split_once(','));
        calls
            .map(|(count, _)| count.parse::<usize>().unwrap())
            .sum()
    };
    costs_what_an_unknown_one_does(rig, so_far).await;
}
