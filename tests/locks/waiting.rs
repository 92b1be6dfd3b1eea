//! Waiting for a lock.

use std::time::Duration;

use idem_tests::faulty::Verb;
use tokio::task::JoinSet;

use crate::rig::{LEASE, Rig, key};
use crate::scene::held;

const LONG: Duration = Duration::from_secs(20);

/// Its looks by itself are `peek`s, at a third of the lease: the release comes before the first.
#[tokio::test]
async fn a_waiter_is_woken_by_the_release_and_not_by_looking() {
    let rig = Rig::new();
    let request = rig.idem.lock(key()).lease(LEASE * 30);
    let first = request.clone().acquire().await.unwrap();
    let waiting = tokio::spawn(request.wait(LONG).acquire());
    rig.store.until_calls(Verb::Claim, 3).await;
    first.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    // The holder's; the waiter's first, its second behind the subscription, and the woken one.
    assert_eq!(rig.store.calls(Verb::Claim), 4);
    assert_eq!(rig.store.calls(Verb::Peek), 0);
}

#[tokio::test]
async fn a_waiter_gets_the_lock_of_a_holder_that_died_after_its_lease() {
    let rig = Rig::new();
    let silent = held(&rig).await;
    rig.store
        .always(Verb::Renew, idem_tests::faulty::Fault::hang());
    let waiting = tokio::spawn(rig.idem.lock(key()).wait(LONG).acquire());
    rig.store.until_calls(Verb::Claim, 3).await;
    rig.clock.advance(LEASE);
    let next = waiting.await.unwrap().unwrap();
    assert!(next.is_takeover() && next.fence() > silent.fence());
}

#[tokio::test]
async fn those_who_wait_get_the_lock_one_after_the_other() {
    let rig = Rig::new();
    let first = held(&rig).await;
    let mut waiting = JoinSet::new();
    for _ in 0..10 {
        let request = rig.idem.lock(key()).wait(LONG);
        waiting.spawn(async move {
            let lock = request.acquire().await.unwrap();
            let fence = lock.fence();
            lock.release().await.unwrap();
            fence
        });
    }
    rig.store.until_calls(Verb::Claim, 21).await;
    first.release().await.unwrap();
    let fences = waiting.join_all().await;
    let distinct: std::collections::BTreeSet<_> = fences.iter().collect();
    assert_eq!(distinct.len(), 10);
}
