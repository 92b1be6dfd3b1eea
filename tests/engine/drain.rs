//! The end of a process.

use std::time::Duration;

use idem_core::{Error, Key, Policy};
use idem_tests::faulty::{Fault, Verb};
use tracing::Level;

use crate::rig::{Bodies, Held, LIMIT, Rig, failure, is_failure, until};
use crate::saying::Said;

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
    assert_eq!(rig.idem.drain(SOON).await, 1);
    let stopped = first.await.unwrap();
    assert!(
        matches!(stopped, Err(Error::LeaseLost { .. })),
        "{stopped:?}"
    );
    let sent_away = waiter.await.unwrap();
    assert!(
        matches!(sent_away, Err(Error::InProgress { .. })),
        "{sent_away:?}"
    );
    assert!(rig.is_abandoned().await);
}

/// Of whoever holds the key, in another process, this one will not hear any more.
#[tokio::test]
async fn it_leaves_no_body_to_one_who_waits_for_another_process() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let other = rig.beside(|builder| builder);
    let first = {
        let (rig, body) = (rig.clone(), held.clone());
        let fails = async move || {
            body.stay().await;
            Err(failure())
        };
        tokio::spawn(async move { rig.run(Policy::new(), fails).await })
    };
    held.entered().await;
    let waiter = {
        let (other, bodies) = (other.clone(), bodies.clone());
        let waits = Policy::new().wait_in_progress().wait(SOON * 1000);
        tokio::spawn(async move { other.count(waits, &bodies).await })
    };
    until("it waits", async || rig.has_waiters().await).await;
    assert_eq!(other.idem.drain(SOON).await, 0);
    held.release();
    assert!(is_failure(&first.await.unwrap()));
    let sent_away = waiter.await.unwrap();
    assert!(
        matches!(sent_away, Err(Error::InProgress { .. })),
        "{sent_away:?}"
    );
    assert_eq!(bodies.count(), 0);
}

/// An error of the call inside would be taken for its own word that nothing happened.
#[tokio::test]
async fn it_stops_a_body_that_waits_in_a_call_of_its_own() {
    let (rig, held) = (Rig::new(), Held::new());
    let other = rig.beside(|builder| builder);
    let first = rig.hold(Policy::new(), &held).await;
    let outer = Key::new("outer", "A").unwrap();
    let waits = Policy::new().wait_in_progress().wait(SOON * 1000);
    let body = async || other.run(waits, async || Ok(2)).await;
    let call = other.idem.run(outer.clone(), Policy::new(), body);
    let draining = async {
        until("it waits", async || rig.has_waiters().await).await;
        other.idem.drain(SOON).await
    };
    let (stopped, count) = tokio::join!(call, draining);
    assert!(
        matches!(stopped, Err(Error::LeaseLost { .. })),
        "{stopped:?}"
    );
    assert_eq!(count, 1);
    let record = rig.idem.peek(&outer).await.unwrap().unwrap();
    assert!(record.running.unwrap().is_abandoned);
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
}

/// Whoever waits may be the next to run.
#[tokio::test]
async fn it_waits_for_those_who_wait_for_another_process() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let other = rig.beside(|builder| builder);
    let first = rig.hold(Policy::new(), &held).await;
    let waiter = {
        let (other, bodies) = (other.clone(), bodies.clone());
        let waits = Policy::new().wait_in_progress().wait(SOON * 1000);
        tokio::spawn(async move { other.count(waits, &bodies).await })
    };
    until("it waits", async || rig.has_waiters().await).await;
    let draining = {
        let idem = other.idem.clone();
        tokio::spawn(async move { idem.drain(Duration::MAX).await })
    };
    tokio::task::yield_now().await;
    assert!(!draining.is_finished());
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    assert_eq!(waiter.await.unwrap().unwrap(), 1);
    assert_eq!(draining.await.unwrap(), 0);
}

#[tokio::test]
async fn what_the_store_has_not_answered_at_its_end_is_said() {
    let (rig, said) = (Rig::new(), Said::default());
    rig.store.always(Verb::Settle, Fault::hang());
    let result = rig.count(Policy::new(), &Bodies::default()).await;
    assert_eq!(result.unwrap(), 1);
    let listens = said.listens(Level::WARN);
    assert_eq!(rig.idem.drain(SOON).await, 0);
    drop(listens);
    let only = said.only();
    assert!(only.contains("under_way=1 "), "{only}");
    rig.store.heal();
    rig.until_idle().await;
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
