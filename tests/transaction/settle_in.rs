//! Attempts in lease mode that settle their record together with their effects.

use std::time::{Duration, Instant};

use idem_core::{Attempt, Error, Idempotency, Key, Outcome, Policy, observe};
use idem_tests::body::Held;
use idem_tests::faulty::{Fault, Faulty, Verb};
use sqlx::Transaction;

use crate::base::{Base, Place};

fn key() -> Key {
    Key::new("lease", 1_i64).unwrap()
}

/// A body whose effect and success are one transaction.
pub(crate) async fn effect<D: Base>(place: &Place<D>) -> anyhow::Result<u32> {
    let mut tx = place.begin().await;
    D::add(&mut tx, 1).await?;
    let run = place.bodies.add();
    let attempt = Attempt::current().expect("this body is guarded");
    attempt.settle_in(&mut tx, &run).await?;
    tx.commit().await?;
    Ok(run)
}

pub(crate) async fn effect_and_success_are_one_transaction<D: Base>() {
    let place = D::place().await;
    for outcome in [Outcome::Executed, Outcome::Replayed] {
        let run = place.leases.run(key(), Policy::new(), || effect(&place));
        let (result, observed) = observe(run).await;
        assert_eq!(result.unwrap(), 1);
        assert_eq!(observed, outcome);
    }
    assert_eq!(place.leases.counts().unconfirmed, 0);
    assert_eq!(place.effects().await, [1]);
}

pub(crate) async fn a_body_that_is_dropped_after_its_commit_has_succeeded<D: Base>() {
    let place = D::place().await;
    let held = Held::new();
    let run = place.leases.run(key(), Policy::new(), async || {
        let run = effect(&place).await?;
        held.stay().await;
        anyhow::Ok(run)
    });
    tokio::select! {
        _ = run => panic!("it stays"),
        () = held.entered() => {}
    }
    let again = place
        .leases
        .run(key(), Policy::new(), || effect(&place))
        .await;
    assert_eq!(again.unwrap(), 1);
    assert_eq!(place.effects().await, [1]);
}

/// The key is free from the commit on, and the engine's own word comes behind it.
pub(crate) async fn a_forgotten_success_is_told_although_the_next_call_runs<D: Base>() {
    let place = D::place().await;
    let policy = Policy::new().forget();
    let (committed, told) = (Held::new(), Held::new());
    let first = async {
        let run = place.leases.run(key(), policy, async || {
            let run = effect(&place).await?;
            committed.stay().await;
            anyhow::Ok(run)
        });
        let first = run.await;
        told.release();
        first
    };
    let next = async {
        committed.entered().await;
        let run = place.leases.run(key(), policy, async || {
            committed.release();
            told.stay().await;
            anyhow::Ok(9_u32)
        });
        run.await
    };
    let (first, next) = tokio::join!(first, next);
    assert_eq!((first.unwrap(), next.unwrap()), (1, 9));
    assert_eq!(place.effects().await, [1]);
}

/// As somebody's attempt, which can be waited for.
pub(crate) async fn a_duplicate_is_told_of_it_before_the_commit<D: Base>() {
    let place = D::place().await;
    let held = Held::new();
    let run = place
        .leases
        .run(key(), Policy::new(), async || stays(&place, &held).await);
    let duplicates = async {
        held.entered().await;
        let body = async || anyhow::Ok(9_u32);
        let told = place.leases.run(key(), Policy::new(), body).await;
        let told = told.unwrap_err().downcast::<Error>().unwrap();
        assert!(matches!(told, Error::InProgress { .. }), "{told}");
        let patient = Policy::new().wait(Duration::from_mins(1));
        let waits = place.leases.run(key(), patient.wait_in_progress(), body);
        let release = async {
            // Who comes later is told so already: the one who waits has met the lock, too.
            let told = place.leases.run(key(), Policy::new(), body).await;
            told.unwrap_err();
            held.release();
        };
        let (waited, ()) = tokio::join!(waits, release);
        waited.unwrap()
    };
    let (first, waited) = tokio::join!(run, duplicates);
    assert_eq!((first.unwrap(), waited), (1, 1));
    assert_eq!(place.effects().await, [1]);
}

/// Also when its lease is over, which is not renewed any more: it may be about to end well.
pub(crate) async fn a_duplicate_is_told_of_it_when_its_lease_is_over<D: Base>() {
    const LEASE: Duration = Duration::from_secs(1);
    let place = D::place().await;
    let held = Held::new();
    let run = place
        .leases
        .run(key(), Policy::new().lease(LEASE), async || {
            stays(&place, &held).await
        });
    let duplicates = async {
        held.entered().await;
        tokio::time::sleep(LEASE * 3 / 2).await;
        let body = async || anyhow::Ok(9_u32);
        let told = place.leases.run(key(), Policy::new(), body).await;
        let told = told.unwrap_err().downcast::<Error>().unwrap();
        assert!(matches!(told, Error::InProgress { .. }), "{told}");
        let mut tx = place.begin().await;
        let body = async |_: &mut Transaction<'_, D>| anyhow::Ok(9_u32);
        let told = place.leases.run_in(&mut tx, key(), Policy::new(), body);
        let told = told.await.unwrap_err().downcast::<Error>().unwrap();
        assert!(matches!(told, Error::InProgress { .. }), "{told}");
        held.release();
    };
    let (first, ()) = tokio::join!(run, duplicates);
    assert_eq!(first.unwrap(), 1);
    assert_eq!(place.effects().await, [1]);
}

/// A body that has settled its attempt, and takes its time to commit.
async fn stays<D: Base>(place: &Place<D>, held: &Held) -> anyhow::Result<u32> {
    let mut tx = place.begin().await;
    D::add(&mut tx, 1).await?;
    let attempt = Attempt::current().expect("this body is guarded");
    attempt.settle_in(&mut tx, &1).await?;
    held.stay().await;
    tx.commit().await?;
    Ok(1)
}

// CASES N28
pub(crate) async fn a_foreign_token_is_an_unknown_one_before_the_commit_too<D: Base>() {
    let place = D::place().await;
    let tokens = place.leases.tokens("order:submit");
    let token = tokens.issue("alice", Duration::from_mins(1)).await.unwrap();
    let held = Held::new();
    let run = tokens.run(&token, "alice", Policy::new(), async || {
        stays(&place, &held).await
    });
    let strangers = async {
        held.entered().await;
        let rejected = async |token: &str| {
            let body = async || anyhow::Ok(9_u32);
            let begin = Instant::now();
            let told = tokens.run(token, "mallory", Policy::new(), body).await;
            let told = told.unwrap_err().downcast::<Error>().unwrap();
            (told.to_string(), begin.elapsed())
        };
        let (unknown, _) = rejected("00112233445566778899aabbccddeeff").await;
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            let (foreign, took) = rejected(token.as_str()).await;
            assert_eq!(foreign, unknown);
            quickest = quickest.min(took);
        }
        // Who meets the lock has to wait for it for longer.
        assert!(quickest < Duration::from_millis(400), "{quickest:?}");
        held.release();
    };
    let (done, ()) = tokio::join!(run, strangers);
    assert_eq!(done.unwrap(), 1);
}

pub(crate) async fn after_a_rollback_the_error_says_how_the_record_ends<D: Base>() {
    let place = D::place().await;
    let failed = place
        .leases
        .run(key(), Policy::new(), async || {
            let mut tx = place.begin().await;
            D::add(&mut tx, 7).await?;
            let attempt = Attempt::current().expect("this body is guarded");
            attempt.settle_in(&mut tx, &0_u32).await?;
            tx.rollback().await?;
            Err::<u32, _>(anyhow::anyhow!("changed its mind"))
        })
        .await;
    assert_eq!(failed.unwrap_err().to_string(), "changed its mind");
    let again = place
        .leases
        .run(key(), Policy::new(), || effect(&place))
        .await;
    assert_eq!(again.unwrap(), 1);
    assert_eq!(place.effects().await, [1]);
}

pub(crate) async fn the_effects_of_a_stale_owner_roll_back_with_it<D: Base>() {
    let place = D::place().await;
    let policy = Policy::new().rerun_abandoned();
    let held = Held::new();
    let stale = place.leases.run(key(), policy, async || {
        let attempt = Attempt::current().expect("this body is guarded");
        held.stay().await;
        let mut tx = place.begin().await;
        D::add(&mut tx, 7).await?;
        match attempt.settle_in(&mut tx, &0_u32).await {
            Ok(()) => tx.commit().await?,
            Err(error) => {
                assert!(matches!(error, Error::LeaseLost { .. }), "{error}");
                tx.rollback().await?;
            }
        }
        anyhow::Ok(0_u32)
    });
    let other = async {
        held.entered().await;
        // An operator frees the key under it.
        place.leases.forget(&key()).force().await.unwrap();
        let run = place.leases.run(key(), policy, || effect(&place)).await;
        held.release();
        run
    };
    let (stale, other) = tokio::join!(stale, other);
    assert_eq!(other.unwrap(), 1);
    assert_eq!(stale.unwrap(), 1, "the winner's result");
    assert_eq!(place.effects().await, [1]);
}

/// Its renewals go unheard, so its lease ends by the clock of the database.
pub(crate) async fn who_was_taken_over_when_its_lease_lapsed_is_told_and_rolls_back<D: Base>() {
    let place = D::place().await;
    let deaf = Faulty::new(D::store(&place.pool));
    deaf.always(Verb::Renew, Fault::hang());
    let deaf = Idempotency::builder(deaf).build().unwrap();
    let lease = Policy::new().lease(Duration::from_secs(1));
    let held = Held::new();
    let stale = deaf.run(key(), lease, async || {
        let attempt = Attempt::current().expect("this body is guarded");
        held.stay().await;
        let mut tx = place.begin().await;
        D::add(&mut tx, 7).await?;
        attempt.settle_in(&mut tx, &0_u32).await?;
        tx.commit().await?;
        anyhow::Ok(0_u32)
    });
    let other = async {
        held.entered().await;
        let patient = lease.rerun_abandoned().wait_in_progress();
        let patient = patient.wait(Duration::from_secs(20));
        let run = place.leases.run(key(), patient, || effect(&place)).await;
        held.release();
        run
    };
    let (stale, other) = tokio::join!(stale, other);
    assert_eq!(other.unwrap(), 1);
    let told = stale.unwrap_err().downcast::<Error>().unwrap();
    assert!(matches!(told, Error::LeaseLost { .. }), "{told}");
    assert_eq!(place.effects().await, [1]);
    let replayed = place
        .leases
        .run(key(), Policy::new(), || effect(&place))
        .await;
    assert_eq!(replayed.unwrap(), 1);
}

pub(crate) async fn a_record_that_is_kept_elsewhere_is_not_settled_here<D: Base>() {
    let place = D::place().await;
    let run = place.idem.run(key(), Policy::new(), || effect(&place));
    let refused = run.await.unwrap_err().downcast::<Error>().unwrap();
    assert!(matches!(refused, Error::LeaseLost { .. }), "{refused}");
    assert!(place.effects().await.is_empty());
}

pub(crate) async fn a_body_with_tx_has_nothing_to_settle<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    let body = async |tx: &mut sqlx::Transaction<'_, D>| {
        let attempt = Attempt::current().expect("this body is guarded");
        attempt.checkpoint().await?;
        assert_eq!(attempt.number(), 1);
        attempt.settle_in(tx, &0).await?;
        Ok::<_, Error>(0)
    };
    let result = place.idem.run_in(&mut tx, key(), Policy::new(), body).await;
    assert!(matches!(result, Err(Error::InvalidPolicy { .. })));
    tx.rollback().await.unwrap();
}

/// What is told of an attempt that settles in a transaction which is older than its lease.
pub(crate) async fn longer_than_its_lease<D: Base>(
    begin: impl AsyncFn(&Place<D>) -> Transaction<'static, D>,
) -> Result<(), Error> {
    let place = D::place().await;
    let lease = Duration::from_secs(1);
    let mut told = Ok(());
    let run = place
        .leases
        .run(key(), Policy::new().lease(lease), async || {
            let mut tx = begin(&place).await;
            D::add(&mut tx, 1).await?;
            tokio::time::sleep(lease * 2).await;
            let attempt = Attempt::current().expect("this body is guarded");
            told = attempt.settle_in(&mut tx, &1).await;
            match &told {
                Ok(()) => tx.commit().await?,
                Err(_) => tx.rollback().await?,
            }
            anyhow::ensure!(told.is_ok(), "not settled");
            Ok(1)
        });
    assert_eq!(run.await.is_ok(), told.is_ok());
    let kept = usize::from(told.is_ok());
    assert_eq!(place.effects().await.len(), kept);
    told
}
