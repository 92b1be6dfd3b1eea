//! The end of a process.

use std::time::Duration;

use idem_core::{Error, Policy};
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{Bodies, Held, LIMIT, Rig, until};

const SOON: Duration = Duration::from_millis(50);

// O09
#[tokio::test]
async fn it_waits_for_a_body_that_ends_in_time() {
    let (rig, held) = (Rig::new(), Held::new());
    let call = rig.hold(Policy::new(), &held).await;
    let draining = {
        let idem = rig.idem.clone();
        tokio::spawn(async move { idem.drain(Duration::MAX).await })
    };
    tokio::task::yield_now().await;
    assert!(!draining.is_finished());
    held.release();
    assert_eq!(draining.await.unwrap(), 0);
    assert_eq!(call.await.unwrap().unwrap(), 1);
}

// O09
#[tokio::test]
async fn it_stops_a_body_that_does_not_end_and_its_record_says_so() {
    let (rig, held) = (Rig::new(), Held::new());
    let call = rig.hold(Policy::new(), &held).await;
    assert_eq!(rig.idem.drain(SOON).await, 1);
    let stopped = call.await.unwrap();
    assert!(
        matches!(stopped, Err(Error::LeaseLost { .. })),
        "{stopped:?}"
    );
    rig.until_abandoned().await;
    // Nobody lost a lease: the process ended.
    assert_eq!(rig.counts().lease_lost, 0);
}

#[tokio::test]
async fn it_waits_for_a_settle_that_goes_on() {
    let rig = Rig::new();
    rig.store.always(Verb::Settle, Fault::hang());
    let result = rig.count(Policy::new(), &Bodies::default()).await;
    assert_eq!(result.unwrap(), 1);
    assert!(rig.is_live().await);
    rig.store.always(Verb::Settle, Fault::NONE);
    assert_eq!(rig.idem.drain(Duration::MAX).await, 0);
    assert!(!rig.is_live().await);
}

/// A claim that is answered after the drain would leave an attempt that nobody runs.
#[tokio::test]
async fn it_waits_for_a_claim_that_is_under_way() {
    let rig = Rig::with(|builder| builder.limit(LIMIT * 50));
    rig.store.next(Verb::Claim, [Fault::NONE.gated()]);
    let call = {
        let rig = rig.clone();
        tokio::spawn(async move { rig.count(Policy::new(), &Bodies::default()).await })
    };
    rig.store.until_calls(Verb::Claim, 1).await;
    let draining = {
        let idem = rig.idem.clone();
        tokio::spawn(async move { idem.drain(Duration::MAX).await })
    };
    tokio::task::yield_now().await;
    assert!(!draining.is_finished());
    rig.store.open();
    assert_eq!(draining.await.unwrap(), 0);
    assert_eq!(call.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn it_ends_in_its_time_although_the_store_is_away_and_a_body_blocks() {
    let rig = Rig::new();
    let blocked = {
        let rig = rig.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            let body = async || {
                std::thread::sleep(LIMIT * 20);
                Ok(1)
            };
            runtime.block_on(rig.run(Policy::new(), body))
        })
    };
    until("the body runs", async || rig.is_live().await).await;
    rig.store.all(Fault::hang());
    assert_eq!(rig.idem.drain(SOON).await, 1);
    assert!(!blocked.is_finished(), "the drain waited for the body");
    assert_eq!(blocked.join().unwrap().unwrap(), 1);
}

/// Whoever waits for a body that is stopped would be the next to run it.
#[tokio::test]
async fn it_leaves_no_body_to_a_waiter() {
    let (rig, held) = (Rig::new(), Held::new());
    let policy = Policy::new().rerun_abandoned().wait_in_progress();
    let first = rig.hold(policy, &held).await;
    let waiter = {
        let (rig, held) = (rig.clone(), held.clone());
        let body = async move || {
            held.stay().await;
            Ok(2)
        };
        tokio::spawn(async move { rig.run(policy, body).await })
    };
    until("it waits", async || rig.has_waiters().await).await;
    assert_eq!(rig.idem.drain(SOON).await, 2);
    for call in [first, waiter] {
        let stopped = call.await.unwrap();
        assert!(
            matches!(stopped, Err(Error::LeaseLost { .. })),
            "{stopped:?}"
        );
    }
    assert!(rig.is_abandoned().await);
}

#[tokio::test]
async fn a_body_that_has_ended_is_not_stopped_although_its_settle_is_under_way() {
    let rig = Rig::with(|builder| builder.limit(LIMIT * 50));
    rig.store.next(Verb::Settle, [Fault::NONE.gated()]);
    let call = {
        let rig = rig.clone();
        tokio::spawn(async move { rig.count(Policy::new(), &Bodies::default()).await })
    };
    rig.store.until_calls(Verb::Settle, 1).await;
    let draining = {
        let idem = rig.idem.clone();
        tokio::spawn(async move { idem.drain(Duration::ZERO).await })
    };
    tokio::time::sleep(SOON).await;
    rig.store.open();
    assert_eq!(draining.await.unwrap(), 0);
    assert_eq!(call.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn an_engine_that_did_nothing_is_drained_at_once() {
    let rig = Rig::new();
    assert_eq!(rig.idem.drain(Duration::MAX).await, 0);
}
