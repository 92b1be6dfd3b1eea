//! Every way in which a lock ends, and what is left of it.

use std::time::Duration;

use idem_core::{Error, Key};
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{LEASE, Rig, dropped_after};
use crate::scene::{held, lock, record, until_free};

#[tokio::test]
async fn a_dropped_guard_releases_the_lock_in_the_background() {
    let rig = Rig::new();
    drop(held(&rig).await);
    until_free(&rig).await;
}

// L04
#[tokio::test]
async fn a_holder_that_panics_lets_go_and_is_renewed_no_more() {
    let rig = Rig::new();
    let holder = tokio::spawn({
        let rig = rig.clone();
        async move {
            let _lock = held(&rig).await;
            panic!("the holder's own");
        }
    });
    assert!(holder.await.unwrap_err().is_panic());
    until_free(&rig).await;
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(rig.store.calls(Verb::Renew), 0);
}

// L02
#[tokio::test]
async fn ten_thousand_quick_pairs_leave_no_key_and_no_renewal() {
    let rig = Rig::new();
    for number in 0..10_000 {
        let key = Key::new("quick", number % 100).unwrap();
        let lock = rig.idem.lock(key).lease(LEASE).acquire().await.unwrap();
        lock.release().await.unwrap();
    }
    assert_eq!(rig.idem.drain(Duration::from_secs(10)).await, 0);
    let renewals = rig.store.calls(Verb::Renew);
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(
        rig.store.calls(Verb::Renew),
        renewals,
        "somebody still renews"
    );
    assert!(rig.idem.records("").await.unwrap().is_empty());
    assert_eq!(rig.store.inner().len(), 100, "one mark for each key");
    rig.clock.advance(Duration::from_secs(10));
    // The store drops what has expired as others write.
    for number in 0..1000 {
        let key = Key::new("other", number).unwrap();
        let lock = rig.idem.lock(key).lease(LEASE).acquire().await.unwrap();
        lock.release().await.unwrap();
    }
    assert_eq!(rig.store.inner().len(), 1000, "a mark outlived its time");
}

#[tokio::test]
async fn an_acquisition_dropped_at_any_moment_holds_nothing() {
    for polls in 1..6 {
        let rig = Rig::new();
        rig.store.always(Verb::Claim, Fault::NONE.yielding());
        rig.store.always(Verb::Now, Fault::NONE.yielding());
        drop(dropped_after(polls, lock(&rig).acquire()).await);
        rig.until_idle().await;
        assert!(record(&rig).await.is_none(), "after {polls} polls");
    }
}

#[tokio::test]
async fn a_release_dropped_at_any_moment_goes_on() {
    for polls in 1..4 {
        let rig = Rig::new();
        rig.store.always(Verb::Settle, Fault::NONE.yielding());
        let held = held(&rig).await;
        drop(dropped_after(polls, held.release()).await);
        until_free(&rig).await;
    }
}

#[tokio::test]
async fn a_waiter_that_goes_away_holds_nothing() {
    let rig = Rig::new();
    let first = held(&rig).await;
    let waiting = tokio::spawn(lock(&rig).wait(LEASE * 10).acquire());
    rig.store.until_calls(Verb::Claim, 3).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    first.release().await.unwrap();
    rig.until_idle().await;
    assert!(record(&rig).await.is_none());
}

/// It goes down with a lock held: there is no body to stop, so that the holder is told.
#[tokio::test]
async fn a_drain_tells_the_holder() {
    let rig = Rig::new();
    let first = held(&rig).await;
    let told = tokio::spawn({
        let lock = first.handle();
        async move { lock.lost().await }
    });
    let draining = tokio::spawn({
        let idem = rig.idem.clone();
        async move { idem.drain(Duration::ZERO).await }
    });
    told.await.unwrap();
    let released = first.release().await;
    assert!(
        matches!(released, Err(Error::LeaseLost { .. })),
        "{released:?}"
    );
    assert_eq!(draining.await.unwrap(), 1);
}
