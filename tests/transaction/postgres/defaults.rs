//! Sessions whose defaults are those of PostgreSQL before 9.1, as some databases still have them: a
//! text shows bytes in another way, and a backslash in one escapes.

use idem_core::store::PostgresStore;
use idem_core::{Idempotency, Outcome, Policy, observe};
use sqlx::Postgres;
use sqlx::postgres::PgPoolOptions;

use crate::base::{Base, Place};
use crate::lease::key;
use crate::settle_in::effect;
use crate::shop::{Then, pay};

const DEFAULTS: [(&str, &str); 2] = [
    ("bytea_output", "escape"),
    ("standard_conforming_strings", "off"),
];

async fn place() -> Place<Postgres> {
    let place = Postgres::place().await;
    let options = place.pool.connect_options();
    let options = (*options).clone().options(DEFAULTS);
    let pool = PgPoolOptions::new().max_connections(8);
    let pool = pool.connect_with(options).await.unwrap();
    let leases = Idempotency::builder(PostgresStore::new(pool.clone())).build();
    Place::new(pool, leases.unwrap(), None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_runs_once_and_is_replayed() {
    let place = place().await;
    for outcome in [Outcome::Executed, Outcome::Replayed] {
        let mut tx = place.begin().await;
        let (result, observed) = observe(pay(&place, &mut tx, 1, Then::End)).await;
        assert_eq!(result.unwrap(), "run 1");
        assert_eq!(observed, outcome);
        tx.commit().await.unwrap();
    }
    assert_eq!(place.effects().await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_lease_mode_a_body_runs_once_and_is_replayed() {
    let place = place().await;
    let call = async || {
        let body = async || anyhow::Ok("run 1".to_owned());
        place.leases.run(key(), Policy::new(), body).await
    };
    for _ in 0..2 {
        assert_eq!(call().await.unwrap(), "run 1");
    }
    let mut tx = place.begin().await;
    assert_eq!(pay(&place, &mut tx, 1, Then::End).await.unwrap(), "run 1");
    assert!(place.effects().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_settles_with_its_effect() {
    let place = place().await;
    for outcome in [Outcome::Executed, Outcome::Replayed] {
        let run = place.leases.run(key(), Policy::new(), || effect(&place));
        let (result, observed) = observe(run).await;
        assert_eq!(result.unwrap(), 1);
        assert_eq!(observed, outcome);
    }
    assert_eq!(place.effects().await, [1]);
}
