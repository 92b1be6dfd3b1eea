//! Many calls at once.

use std::time::{Duration, Instant};

use idem_core::record::Op;
use idem_core::{Error, Idempotency, Key, Policy};
use idem_tests::faulty::{Fault, Verb};
use tokio::task::JoinSet;

use crate::rig::{Bodies, Rig};

// C02
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_identical_calls_one_runs() {
    for policy in [Policy::new(), Policy::new().wait_in_progress()] {
        let (rig, bodies) = (Rig::new(), Bodies::default());
        let mut calls = JoinSet::new();
        for _ in 0..64 {
            let (rig, bodies) = (rig.clone(), bodies.clone());
            calls.spawn(async move { rig.count(policy, &bodies).await });
        }
        let waits = policy == policy.wait_in_progress();
        for result in calls.join_all().await {
            match result {
                Ok(1) => {}
                Err(Error::InProgress { .. }) if !waits => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(bodies.count(), 1);
        assert_eq!(rig.store.calls(Verb::Settle), 1);
        if !waits {
            assert_eq!(rig.store.calls(Verb::Claim), 64);
        }
    }
}

// C02
#[tokio::test]
async fn every_attempt_has_an_owner_of_its_own() {
    let rig = Rig::new();
    for number in 0..100 {
        let key = Key::new("many", number).unwrap();
        let call = rig.idem.run(key, Policy::new(), async || Ok::<_, Error>(1));
        call.await.unwrap();
    }
    let owner = |op| match op {
        Op::Claim(claim) => Some(*claim.owner.as_bytes()),
        _ => None,
    };
    let mut owners: Vec<_> = rig.store.seen().into_iter().filter_map(owner).collect();
    owners.sort_unstable();
    owners.dedup();
    assert_eq!(owners.len(), 100);
}

// C07
#[tokio::test]
async fn fifty_keys_run_beside_one_another() {
    let idem = Idempotency::memory();
    let begin = Instant::now();
    let mut calls = JoinSet::new();
    for number in 0..50 {
        let idem = idem.clone();
        let key = Key::new("many", number).unwrap();
        calls.spawn(async move {
            let body = async || {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok::<_, Error>(number)
            };
            idem.run(key, Policy::new(), body).await
        });
    }
    for result in calls.join_all().await {
        result.unwrap();
    }
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
}

// C01
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rounds_of_a_storm_with_lost_replies_and_double_deliveries_run_each_body_once() {
    for round in 0..50 {
        let (rig, bodies) = (Rig::new(), Bodies::default());
        let fault = [
            Fault::NONE.yielding(),
            Fault::deliver_twice(),
            Fault::deliver_twice().yielding(),
        ][round % 3];
        rig.store.all(fault);
        rig.store.next(Verb::Claim, [Fault::lose_the_reply()]);
        rig.store.next(Verb::Settle, [Fault::lose_the_reply()]);
        let mut calls = JoinSet::new();
        for _ in 0..20 {
            let (rig, bodies) = (rig.clone(), bodies.clone());
            let policy = Policy::new().wait_in_progress();
            calls.spawn(async move { rig.count(policy, &bodies).await });
        }
        for result in calls.join_all().await {
            assert_eq!(result.unwrap(), 1);
        }
        assert_eq!(bodies.count(), 1);
    }
}
