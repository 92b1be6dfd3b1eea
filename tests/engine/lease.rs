//! Leases: kept while the body runs, whatever becomes of a heartbeat.
//!
//! An attempt's own lease runs on the machine's monotonic clock, so these tests take a lease's
//! time; the store's clock is moved by hand.

use std::time::{Duration, Instant};

use idem_core::record::Status;
use idem_core::store::StoreKey;
use idem_core::{Error, Key, Policy, StoreErrorKind};
use idem_tests::faulty::{Fault, Verb};
use tokio::task::JoinSet;

use crate::lost::is_lost;
use crate::rig::{Bodies, Held, LEASE, LIMIT, Rig, until};

pub(crate) const HOLD: Policy = Policy::new().lease(LEASE);
pub(crate) const RERUN: Policy = HOLD.rerun_abandoned();

// E14, E04
#[tokio::test]
async fn a_body_that_is_longer_than_its_lease_keeps_its_record() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let first = rig.hold(RERUN, &held).await;
    for beat in 1..=3 {
        rig.store.until_calls(Verb::Renew, beat).await;
        // Come is not yet done: the lease counts anew when the store has it.
        let is_renewed = async || rig.running().await.unwrap().lease_left == LEASE;
        until("it is renewed", is_renewed).await;
        rig.clock.advance(LEASE * 9 / 10);
        let refused = rig.count(RERUN, &bodies).await;
        assert!(
            matches!(refused, Err(Error::InProgress { .. })),
            "{refused:?}"
        );
    }
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    assert_eq!(rig.counts().lease_lost, 0);
}

#[tokio::test]
async fn a_body_that_blocks_its_thread_does_not_starve_its_renewal() {
    let rig = Rig::new();
    let result = rig.run(RERUN, async || {
        std::thread::sleep(LEASE + LEASE / 2);
        Ok(1)
    });
    assert_eq!(result.await.unwrap(), 1);
    assert!(rig.store.calls(Verb::Renew) >= 3);
    assert_eq!(rig.counts().lease_lost, 0);
}

// L02
#[tokio::test]
async fn no_renewal_outlives_its_call() {
    let rig = Rig::new();
    for number in 0..1000 {
        let key = Key::new("short", number).unwrap();
        let call = rig.idem.run(key, HOLD, async || Ok::<_, Error>(number));
        assert_eq!(call.await.unwrap(), number);
    }
    let held = Held::new();
    let dropped = rig.hold(HOLD, &held).await;
    dropped.abort();
    assert!(dropped.await.is_err());
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(rig.store.calls(Verb::Renew), 0);
}

// L08
#[tokio::test]
async fn a_heartbeat_that_failed_is_repeated_in_time() {
    for fault in [Fault::fail(StoreErrorKind::Unavailable), Fault::hang()] {
        let (rig, held) = (Rig::new(), Held::new());
        rig.store.next(Verb::Renew, [fault; 2]);
        let first = rig.hold(RERUN, &held).await;
        rig.store.until_calls(Verb::Renew, 4).await;
        held.release();
        assert_eq!(first.await.unwrap().unwrap(), 1);
        assert_eq!(rig.counts().lease_lost, 0);
    }
}

/// A store that renews one by one, as those do that have nothing better.
#[tokio::test]
async fn many_attempts_over_a_slow_store_do_not_lose_their_leases_together() {
    const SLOW: Fault = Fault::NONE.after(Duration::from_millis(5));
    let rig = Rig::with(|builder| builder.limit(LIMIT * 4));
    rig.store.always(Verb::Renew, SLOW);
    let held = Held::new();
    let calls = held_calls(&rig, 200, &held);
    tokio::time::sleep(LEASE * 3 / 2).await;
    for _ in 0..200 {
        held.release();
    }
    for result in calls.join_all().await {
        result.unwrap();
    }
    assert_eq!(rig.counts().lease_lost, 0);
}

/// As where one node of a cluster is away.
#[tokio::test]
async fn a_key_that_hangs_costs_no_other_its_lease() {
    let rig = Rig::with(|builder| builder.limit(LIMIT * 4));
    let hangs = StoreKey::new("idem", &Key::new("many", 7).unwrap()).unwrap();
    rig.store.on_key(Verb::Renew, &hangs, Fault::hang());
    let held = Held::new();
    let mut calls = held_calls(&rig, 40, &held);
    tokio::time::sleep(LEASE * 3 / 2).await;
    assert!(is_lost(&calls.join_next().await.unwrap().unwrap()));
    for _ in 0..39 {
        held.release();
    }
    for result in calls.join_all().await {
        result.unwrap();
    }
    assert_eq!(rig.counts().lease_lost, 1);
}

/// Calls of many keys that stay until they are let go.
fn held_calls(rig: &Rig, number: u32, held: &Held) -> JoinSet<Result<u32, Error>> {
    let mut calls = JoinSet::new();
    for number in 0..number {
        let (idem, held) = (rig.idem.clone(), held.clone());
        let key = Key::new("many", number).unwrap();
        calls.spawn(async move {
            let body = async || {
                held.stay().await;
                Ok(number)
            };
            idem.run(key, RERUN, body).await
        });
    }
    calls
}

#[tokio::test]
async fn a_record_that_the_store_lost_is_written_anew_by_the_next_heartbeat() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = rig.hold(HOLD, &held).await;
    let fence = rig.record().await.unwrap().fence;
    rig.lose().await;
    assert_eq!(rig.status().await, None);
    rig.store.until_calls(Verb::Renew, 1).await;
    let is_back = async || rig.status().await == Some(Status::Processing);
    until("it is back", is_back).await;
    assert_eq!(rig.record().await.unwrap().fence, fence);
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    assert_eq!(rig.counts().record_lost, 1);
}

/// Its heartbeat finds the record finished: that is no loss.
#[tokio::test]
async fn a_heartbeat_under_way_when_the_body_ends_reports_no_loss() {
    let (rig, held) = (Rig::new(), Held::new());
    rig.store.always(Verb::Renew, Fault::NONE.gated());
    let first = rig.hold(RERUN, &held).await;
    rig.store.until_calls(Verb::Renew, 1).await;
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    rig.store.open();
    tokio::time::sleep(LIMIT).await;
    assert_eq!(rig.counts().lease_lost, 0);
}

/// Its settle is longer under way than its lease lasts: no heartbeat hurries, and every deadline is
/// kept, for which the background thread has to be free.
#[tokio::test]
async fn a_lease_that_runs_out_while_its_settle_is_under_way_does_not_hold_up_the_background_thread()
 {
    let rig = Rig::with(|builder| builder.limit(LEASE * 2));
    for verb in [Verb::Renew, Verb::Settle] {
        rig.store.always(verb, Fault::hang());
    }
    let call = {
        let rig = rig.clone();
        tokio::spawn(async move { rig.run(HOLD, async || Ok(1)).await })
    };
    let answered = tokio::time::timeout(LEASE * 5, call).await;
    assert!(answered.is_ok(), "the call had no answer within its limit");
    // One by each heartbeat that was due, and one for each that was not answered.
    let renewals = rig.store.calls(Verb::Renew);
    assert!(renewals < 30, "{renewals}");
    for verb in [Verb::Renew, Verb::Settle] {
        rig.store.always(verb, Fault::NONE);
    }
    rig.until_idle().await;
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.counts().lease_lost, 0);
}

/// A retention that no heartbeat can keep harms its own record, and nobody else's.
#[tokio::test]
async fn a_retention_of_a_millisecond_does_not_stop_the_background_thread() {
    let rig = Rig::with(|builder| builder.limit(LEASE * 2));
    let begin = Instant::now();
    let tiny = Policy::new().expire(Duration::from_millis(1));
    let held = Held::new();
    let first = rig.hold(tiny, &held).await;
    let key = Key::new("other", 1).unwrap();
    let body = async || {
        tokio::time::sleep(LEASE / 2).await;
        Ok::<_, Error>(1)
    };
    assert_eq!(rig.idem.run(key, HOLD, body).await.unwrap(), 1);
    first.abort();
    assert!(first.await.is_err());
    let idle = tokio::time::timeout(LEASE * 20, rig.until_idle()).await;
    assert!(idle.is_ok(), "the background goes on");
    // A heartbeat in ten milliseconds at most, by either of the two.
    let renewals = rig.store.calls(Verb::Renew);
    let time_for = begin.elapsed().as_millis() / 10 + 1;
    assert!(renewals as u128 <= 2 * time_for, "{renewals}");
}
