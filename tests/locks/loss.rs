//! Locks that are lost while they are held: told, counted, and never called released.
//!
//! The holder's lease runs on the machine's monotonic clock, so these tests take a lease's time.

use std::time::Instant;

use idem_core::Error;
use idem_core::StoreErrorKind;
use idem_core::record::Outcome;
use idem_core::store::StoreKey;
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{LEASE, LIMIT, Rig, key};
use crate::scene::{held, is_held, is_lost, lock, record, until_free};

// L01, L08
#[tokio::test]
async fn when_renewals_are_cut_the_holder_is_told_and_its_release_is_refused() {
    let (rig, begin) = (Rig::new(), Instant::now());
    rig.store.always(Verb::Renew, Fault::hang());
    let first = held(&rig).await;
    assert!(!first.is_lost());
    first.lost().await;
    assert!(begin.elapsed() >= LEASE * 7 / 10, "{:?}", begin.elapsed());
    assert!(first.is_lost());
    assert_eq!(rig.counts().lease_lost, 1);
    rig.clock.advance(LEASE);
    let next = held(&rig).await;
    assert!(next.fence() > first.fence());
    let told = first.release().await;
    assert!(is_lost(&told), "{told:?}");
    let refused = lock(&rig).acquire().await;
    assert!(is_held(&refused), "the next holder's lock was released");
    assert!(!next.is_lost());
}

/// Lost is lost, also where nobody came: the holder could not know.
#[tokio::test]
async fn a_lock_that_was_lost_is_not_called_released_but_is_free() {
    let rig = Rig::new();
    rig.store.always(Verb::Renew, Fault::hang());
    let first = held(&rig).await;
    first.lost().await;
    let told = first.release().await;
    assert!(is_lost(&told), "{told:?}");
    assert!(record(&rig).await.is_none());
}

// L08
#[tokio::test]
async fn a_renewal_that_failed_is_repeated_and_the_lock_is_kept() {
    for fault in [Fault::fail(StoreErrorKind::Unavailable), Fault::hang()] {
        let rig = Rig::new();
        rig.store.next(Verb::Renew, [fault; 2]);
        let first = held(&rig).await;
        rig.store.until_calls(Verb::Renew, 4).await;
        assert!(!first.is_lost());
        first.release().await.unwrap();
        assert_eq!(rig.counts().lease_lost, 0);
    }
}

/// Not `rebuilt` as a request would be: whoever came meanwhile may still be there.
#[tokio::test]
async fn a_holder_whose_record_the_store_lost_is_told_at_the_next_renewal() {
    let rig = Rig::new();
    let first = held(&rig).await;
    let of_lock = key().of_lock();
    let store_key = StoreKey::new("idem", &of_lock).unwrap();
    rig.store.inner().damage(&store_key);
    rig.idem.forget(&of_lock).force().await.unwrap();
    first.lost().await;
    assert_eq!(rig.store.calls(Verb::Renew), 1);
    assert!(record(&rig).await.is_none());
}

#[tokio::test]
async fn a_holder_that_was_overtaken_is_told_at_the_next_renewal() {
    let rig = Rig::new();
    let first = held(&rig).await;
    rig.clock.advance(LEASE);
    let next = held(&rig).await;
    first.lost().await;
    drop(first);
    assert_eq!(rig.idem.counts().lease_lost, 1);
    next.release().await.unwrap();
}

/// Clones live on in tasks, and do not keep the lock.
#[tokio::test]
async fn a_task_with_a_clone_is_told_of_the_loss() {
    let rig = Rig::new();
    rig.store.always(Verb::Renew, Fault::hang());
    let first = held(&rig).await;
    let lock = first.handle();
    let task = tokio::spawn(async move { lock.lost().await });
    task.await.unwrap();
    assert!(first.is_lost());
}

// L06
#[tokio::test]
async fn the_lease_counts_from_the_acquisition_and_not_from_the_beginning_of_the_wait() {
    let rig = Rig::new();
    let first = held(&rig).await;
    let waiting = tokio::spawn(lock(&rig).wait(LEASE * 10).acquire());
    // Longer than the waiter's lease would be.
    rig.store.until_calls(Verb::Renew, 4).await;
    rig.store.always(Verb::Renew, Fault::hang());
    first.release().await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    let begin = Instant::now();
    assert!(!second.is_lost());
    second.lost().await;
    assert!(begin.elapsed() >= LEASE * 6 / 10, "{:?}", begin.elapsed());
}

// L06
#[tokio::test]
async fn a_grant_that_is_heard_too_late_is_an_error_and_holds_nothing() {
    let rig = Rig::with(|builder| builder.limit(LEASE * 3));
    rig.store
        .next(Verb::Claim, [Fault::NONE.after(LEASE * 9 / 10)]);
    let lost = lock(&rig).acquire().await;
    assert!(is_lost(&lost), "{lost:?}");
    until_free(&rig).await;
}

#[tokio::test]
async fn a_store_that_does_not_answer_gives_no_lock_and_holds_none() {
    let rig = Rig::with(|builder| builder.defaults(idem_core::Policy::new().run_on_store_error()));
    rig.store.next(Verb::Claim, [Fault::swallow_the_reply(); 2]);
    let refused = lock(&rig).acquire().await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    rig.until_idle().await;
    assert_eq!(rig.outcomes().first(), Some(&Outcome::GiveUp));
    held(&rig).await.release().await.unwrap();
}

/// It was held to its end: the next holder came behind the first word of it.
#[tokio::test]
async fn a_release_that_was_told_again_behind_the_next_holder_is_one() {
    let rig = Rig::with(|builder| builder.limit(LIMIT * 50));
    let first = held(&rig).await;
    let again = Fault::NONE.gated();
    rig.store
        .next(Verb::Settle, [Fault::lose_the_reply(), again]);
    let releasing = tokio::spawn(first.release());
    rig.store.until_calls(Verb::Settle, 2).await;
    let next = held(&rig).await;
    rig.store.open();
    releasing.await.unwrap().unwrap();
    assert!(!next.is_lost());
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_release_without_an_answer_is_an_error_and_goes_on_in_the_background() {
    let rig = Rig::new();
    let first = held(&rig).await;
    rig.store.always(Verb::Settle, Fault::hang());
    let told = first.release().await;
    assert!(matches!(told, Err(Error::Store { .. })), "{told:?}");
    assert_eq!(rig.counts().unconfirmed, 0);
    rig.store.heal();
    until_free(&rig).await;
    assert!(LIMIT < LEASE);
}
