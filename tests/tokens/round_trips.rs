//! What a wrong token costs: a time that says nothing about it.

use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use idem_core::{Error, Policy};
use idem_tests::body::{Bodies, until};
use idem_tests::round_trips::counting;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::rig::{ALICE, MALLORY, is_rejected, on_postgres, postgres_url};

// N28
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_token_waits_for_the_server_as_often_as_an_unknown_one() {
    let options = PgConnectOptions::from_str(&postgres_url()).unwrap();
    let (port, count) = counting(options.get_port()).await;
    // Of one connection whoever asks next waits for the end of all that was asked before.
    let pool = PgPoolOptions::new().max_connections(1);
    let pool = pool.connect_with(options.port(port)).await.unwrap();
    let rig = on_postgres(pool.clone()).await;

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
    let round_trips = async || {
        sqlx::query("SELECT 1").execute(&pool).await.unwrap();
        // Before it is, the pool asks the server for a sign of life.
        until("it is given back", async || pool.num_idle() == 1).await;
        count.load(Ordering::Relaxed)
    };
    let mut cost = Vec::new();
    // In the first round statements are prepared.
    for _ in 0..2 {
        cost.clear();
        for (what, token, subject) in wrong {
            let before = round_trips().await;
            let never = async || -> Result<u32, Error> { panic!("the body ran") };
            let refused = rig
                .tokens
                .run(Some(token), subject, Policy::new(), never)
                .await;
            assert!(is_rejected(&refused), "{what}: {refused:?}");
            cost.push((what, round_trips().await - before));
        }
    }
    let before = round_trips().await;
    let nothing = round_trips().await - before;
    let (_, unknown) = cost[0];
    assert!(unknown > nothing, "it did not ask");
    assert!(cost.iter().all(|(_, wrong)| *wrong == unknown), "{cost:?}");
}
