//! Calls that wait for a live attempt elsewhere.

use std::time::{Duration, Instant};

use idem_core::engine::NotDone;
use idem_core::record::Op;
use idem_core::{Error, Outcome, Policy, StoreErrorKind, observe};
use idem_tests::faulty::{Fault, Verb};
use tokio::task::{JoinHandle, JoinSet};

use crate::rig::{Bodies, Held, LEASE, LIMIT, Rig, dropped_after, failure, is_failure, until};

const LONG: Duration = Duration::from_secs(20);
const WAITS: Policy = Policy::new().wait_in_progress().wait(LONG);

type Observed = (Result<u32, Error>, Outcome);

/// Calls that wait, and have subscribed and asked a second time.
async fn waiters(rig: &Rig, number: usize, bodies: &Bodies, policy: Policy) -> JoinSet<Observed> {
    let claims = rig.store.calls(Verb::Claim);
    let mut waiters = JoinSet::new();
    for _ in 0..number {
        let (rig, bodies) = (rig.clone(), bodies.clone());
        waiters.spawn(async move { observe(rig.count(policy, &bodies)).await });
    }
    rig.store
        .until_calls(Verb::Claim, claims + number * 2)
        .await;
    waiters
}

/// A body that stays at `held` and then fails.
async fn failing(rig: &Rig, held: &Held) -> JoinHandle<Result<u32, Error>> {
    let (running, body) = (rig.clone(), held.clone());
    let call = tokio::spawn(async move {
        let body = async || {
            body.stay().await;
            Err(failure())
        };
        running.run(Policy::new(), body).await
    });
    held.entered().await;
    call
}

// C06
#[tokio::test]
async fn a_thousand_waiters_get_the_result_by_push_with_one_store_wait_for_all() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let first = rig.hold(WAITS, &held).await;
    let waiters = waiters(&rig, 1000, &bodies, WAITS).await;
    let begin = Instant::now();
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    for (result, outcome) in waiters.join_all().await {
        assert_eq!(result.unwrap(), 1);
        assert_eq!(outcome, Outcome::Waited);
    }
    assert_eq!(bodies.count(), 0);
    assert!(begin.elapsed() < Duration::from_secs(2), "not by push");
    assert_eq!(rig.store.calls(Verb::Watch), 1);
    // At most one look a second for all of them, and three claims for each.
    assert!(
        rig.store.calls(Verb::Peek) <= 3,
        "{}",
        rig.store.calls(Verb::Peek)
    );
    assert!(rig.store.calls(Verb::Claim) <= 1 + 3000);
}

// C06
#[tokio::test]
async fn when_the_owner_fails_one_waiter_runs_and_the_rest_go_on_waiting() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let first = failing(&rig, &held).await;
    let waiters = waiters(&rig, 50, &bodies, WAITS).await;
    held.release();
    assert!(is_failure(&first.await.unwrap()));
    let observed = waiters.join_all().await;
    assert_eq!(bodies.count(), 1);
    for (result, _) in &observed {
        assert_eq!(*result.as_ref().unwrap(), 1);
    }
    let ran = |(_, outcome): &&Observed| *outcome == Outcome::Executed;
    assert_eq!(observed.iter().filter(ran).count(), 1);
}

#[tokio::test]
async fn when_every_owner_fails_each_waiter_runs_in_turn() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = failing(&rig, &held).await;
    let mut waiters = JoinSet::new();
    let bodies = Bodies::default();
    for _ in 0..10 {
        let (rig, bodies) = (rig.clone(), bodies.clone());
        waiters.spawn(async move {
            let body = async || {
                bodies.add();
                tokio::task::yield_now().await;
                Err(failure())
            };
            rig.run(WAITS, body).await
        });
    }
    rig.store.until_calls(Verb::Claim, 1 + 2 * 10).await;
    held.release();
    assert!(is_failure(&first.await.unwrap()));
    for result in waiters.join_all().await {
        assert!(is_failure(&result), "{result:?}");
    }
    assert_eq!(bodies.count(), 10);
}

// C06
#[tokio::test]
async fn a_wait_ends_after_its_time_with_what_is_left_of_the_lease() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let _first = rig.hold(Policy::new(), &held).await;
    for wait in [Duration::ZERO, Duration::from_millis(150)] {
        let begin = Instant::now();
        let refused = rig.count(WAITS.wait(wait), &bodies).await;
        let Err(Error::InProgress { retry_after, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(retry_after, Duration::from_secs(30));
        assert!(begin.elapsed() >= wait);
        assert!(begin.elapsed() < wait + LIMIT * 10);
    }
    assert_eq!(bodies.count(), 0);
}

#[tokio::test]
async fn a_wait_without_end_is_one() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let first = rig.hold(Policy::new(), &held).await;
    let waiters = waiters(&rig, 1, &bodies, WAITS.wait(Duration::MAX)).await;
    held.release();
    first.await.unwrap().unwrap();
    assert_eq!(waiters.join_all().await[0].0.as_ref().unwrap(), &1);
}

#[tokio::test]
async fn a_dropped_owner_is_noticed_by_push() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let policy = WAITS.rerun_abandoned();
    let first = rig.hold(policy, &held).await;
    let waiters = waiters(&rig, 3, &bodies, policy).await;
    first.abort();
    for (result, _) in waiters.join_all().await {
        assert_eq!(result.unwrap(), 1);
    }
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn an_operators_word_wakes_the_waiters() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let first = rig.hold(WAITS.lease(LEASE), &held).await;
    let waiters = waiters(&rig, 3, &bodies, WAITS).await;
    // The store's clock alone: the attempt itself thinks that it has its lease.
    rig.clock.advance(LEASE);
    rig.idem.resolve(&crate::rig::key(), NotDone).await.unwrap();
    for (result, _) in waiters.join_all().await {
        assert_eq!(result.unwrap(), 1);
    }
    assert_eq!(bodies.count(), 1);
    first.abort();
}

/// An owner that dies says nothing: its lease has to end.
#[tokio::test]
async fn an_owner_that_dies_in_silence_is_noticed_when_its_lease_ends() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let policy = WAITS.rerun_abandoned().lease(LEASE);
    let first = rig.hold(policy, &held).await;
    let waiters = waiters(&rig, 3, &bodies, policy).await;
    rig.store.always(Verb::Settle, Fault::hang());
    rig.store.always(Verb::Renew, Fault::hang());
    first.abort();
    assert!(first.await.is_err());
    rig.clock.advance(LEASE);
    // The winner can not settle for now; it is the first whose body has run.
    until("one of them runs", async || bodies.count() > 0).await;
    rig.store.all(Fault::NONE);
    for (result, _) in waiters.join_all().await {
        assert_eq!(result.unwrap(), 1);
    }
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn without_push_a_look_now_and_then_finds_the_end() {
    for fault in [Fault::fail(StoreErrorKind::Unavailable), Fault::hang()] {
        let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
        rig.store.always(Verb::Watch, fault);
        let policy = WAITS.lease(LEASE);
        let first = rig.hold(policy, &held).await;
        let waiters = waiters(&rig, 3, &bodies, policy).await;
        held.release();
        first.await.unwrap().unwrap();
        let begin = Instant::now();
        for (result, _) in waiters.join_all().await {
            assert_eq!(result.unwrap(), 1);
        }
        assert!(begin.elapsed() < LEASE, "{:?}", begin.elapsed());
    }
}

/// The claim of somebody who waits says so, and only that one.
#[tokio::test]
async fn only_a_call_that_waits_asks_to_be_woken() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let first = rig.hold(Policy::new(), &held).await;
    assert!(rig.count(Policy::new(), &bodies).await.is_err());
    assert!(!rig.has_waiters().await);
    let waiting = waiters(&rig, 1, &bodies, WAITS).await;
    assert!(rig.has_waiters().await);
    held.release();
    first.await.unwrap().unwrap();
    waiting.join_all().await;
}

#[tokio::test]
async fn a_waiter_that_leaves_takes_the_store_wait_with_it() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let policy = WAITS.lease(LEASE);
    let first = rig.hold(policy, &held).await;
    let mut gone = waiters(&rig, 5, &bodies, policy).await;
    gone.abort_all();
    while gone.join_next().await.is_some() {}
    // Had the store wait stayed, it would look at the record three times in a lease.
    let peeks = rig.store.calls(Verb::Peek);
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(rig.store.calls(Verb::Peek), peeks);
    // And the next one who waits begins one of its own.
    let waiters = waiters(&rig, 1, &bodies, policy).await;
    assert_eq!(rig.store.calls(Verb::Watch), 2);
    held.release();
    first.await.unwrap().unwrap();
    assert_eq!(waiters.join_all().await[0].0.as_ref().unwrap(), &1);
}

#[tokio::test]
async fn waiters_of_many_keys_do_not_disturb_one_another() {
    let rig = Rig::new();
    let held = Held::new();
    let mut calls = JoinSet::new();
    for number in 0..50 {
        for _ in 0..4 {
            let (idem, held) = (rig.idem.clone(), held.clone());
            let key = idem_core::Key::new("many", number).unwrap();
            calls.spawn(async move {
                let body = async || {
                    held.stay().await;
                    Ok::<_, Error>(number)
                };
                (number, idem.run(key, WAITS, body).await)
            });
        }
    }
    for _ in 0..50 {
        held.entered().await;
    }
    for _ in 0..50 {
        held.release();
    }
    for (number, result) in calls.join_all().await {
        assert_eq!(result.unwrap(), number);
    }
    let claims = rig.store.seen();
    let claims = claims.iter().filter(|op| matches!(op, Op::Claim(_)));
    assert!(claims.count() <= 50 + 150 * 3);
}

/// A store of somebody's own may panic where it subscribes.
#[tokio::test]
async fn a_store_wait_that_panics_costs_its_waiters_the_push_and_nobody_else() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let policy = WAITS.wait(LIMIT);
    let first = rig.hold(policy, &held).await;
    rig.store.next(Verb::Watch, [Fault::panic()]);
    let refused = rig.count(policy, &bodies).await;
    assert!(
        matches!(refused, Err(Error::InProgress { .. })),
        "{refused:?}"
    );
    let waiters = waiters(&rig, 3, &bodies, WAITS).await;
    assert_eq!(rig.store.calls(Verb::Watch), 2);
    held.release();
    first.await.unwrap().unwrap();
    for (result, _) in waiters.join_all().await {
        assert_eq!(result.unwrap(), 1);
    }
}

/// As soon as nobody waits, nothing of the wait is left.
#[tokio::test]
async fn a_waiter_dropped_after_any_poll_leaves_nothing_behind() {
    for polls in 1.. {
        let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
        let first = rig.hold(Policy::new(), &held).await;
        rig.store.all(Fault::NONE.yielding());
        let call = rig.count(WAITS.wait(LIMIT / 2), &bodies);
        let ended = dropped_after(polls, call).await.is_some();
        rig.clock.advance(LIMIT * 2);
        held.release();
        assert_eq!(first.await.unwrap().unwrap(), 1);
        rig.until_idle().await;
        assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
        assert_eq!(bodies.count(), 0);
        let store = rig.store.clone();
        drop(rig);
        until("the engine is gone", async || store.is_alone()).await;
        if ended {
            assert!(polls > 4, "only {polls} polls: nothing was interrupted");
            return;
        }
    }
}
