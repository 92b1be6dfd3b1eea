//! The fence: higher for each holder, whatever became of the one before.

use std::time::Duration;

use idem_core::record::Fence;
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{LEASE, Rig, key};
use crate::scene::{held, lock};

#[tokio::test]
async fn the_fence_rises_over_a_release() {
    let rig = Rig::new();
    let mut last = Fence::default();
    for _ in 0..10 {
        let lock = held(&rig).await;
        assert!(lock.fence() > last && !lock.is_takeover());
        last = lock.fence();
        lock.release().await.unwrap();
    }
}

#[tokio::test]
async fn the_fence_rises_over_an_expiry_and_the_next_holder_is_told_of_it() {
    let rig = Rig::new();
    rig.store.always(Verb::Renew, Fault::hang());
    let silent = held(&rig).await;
    rig.clock.advance(LEASE);
    let next = held(&rig).await;
    assert!(next.fence() > silent.fence());
    assert!(next.is_takeover());
}

#[tokio::test]
async fn the_fence_rises_over_the_end_of_the_closed_mark_and_over_a_loss_of_the_record() {
    let rig = Rig::new();
    let first = held(&rig).await;
    let last = first.fence();
    first.release().await.unwrap();
    rig.clock.advance(Duration::from_hours(1));
    let second = held(&rig).await;
    assert!(second.fence() > last);
    let of_lock = key().of_lock();
    rig.store
        .inner()
        .damage(&idem_core::store::StoreKey::new("idem", &of_lock).unwrap());
    rig.idem.forget(&of_lock).force().await.unwrap();
    // A store that has lost its records has only its clock, which goes on.
    rig.clock.advance(Duration::from_millis(1));
    assert!(lock(&rig).acquire().await.unwrap().fence() > second.fence());
}
