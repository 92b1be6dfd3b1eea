//! What becomes of a settle that is not answered.

use std::time::Duration;

use idem_core::record::Status;
use idem_core::{Error, Policy, StoreErrorKind};
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{Bodies, LIMIT, Rig, failure, is_failure};

// N23
#[tokio::test]
async fn a_settle_whose_reply_was_lost_is_sent_again() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Settle, [Fault::lose_the_reply()]);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(rig.store.calls(Verb::Settle), 2);
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.counts().unconfirmed, 0);
}

// S07, N02
#[tokio::test]
async fn a_good_body_gives_its_result_although_the_store_is_away_and_the_settle_goes_on() {
    for fault in [Fault::hang(), Fault::fail(StoreErrorKind::Unavailable)] {
        let (rig, bodies) = (Rig::new(), Bodies::default());
        rig.store.always(Verb::Settle, fault);
        assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
        assert_eq!(rig.counts().unconfirmed, 1);
        assert_eq!(rig.status().await, Some(Status::Processing));
        let refused = rig.count(Policy::new(), &bodies).await;
        assert!(matches!(refused, Err(Error::InProgress { .. })));

        rig.store.always(Verb::Settle, Fault::NONE);
        rig.until_idle().await;
        assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
        assert_eq!(bodies.count(), 1);
    }
}

/// What is held as unknown is held for longer than `expire`, and so long its owner's word counts.
#[tokio::test]
async fn a_store_that_was_away_for_longer_than_the_retention_still_hears_of_a_success() {
    const EXPIRE: Duration = Duration::from_millis(500);
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let policy = Policy::new().expire(EXPIRE);
    let away = Fault::fail(StoreErrorKind::Unavailable);
    rig.store.always(Verb::Settle, away);
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
    tokio::time::sleep(EXPIRE * 2).await;
    rig.clock.advance(EXPIRE * 2);
    rig.store.always(Verb::Settle, Fault::NONE);
    rig.until_idle().await;
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn a_record_that_was_lost_is_counted_also_where_its_success_was_told_later() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let away = Fault::fail(StoreErrorKind::Unavailable);
    rig.store.always(Verb::Settle, away);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    rig.lose().await;
    rig.store.always(Verb::Settle, Fault::NONE);
    rig.until_idle().await;
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.counts().record_lost, 1);
    assert_eq!(rig.counts().unconfirmed, 1);
}

#[tokio::test]
async fn a_failed_body_gives_its_own_error_although_the_store_is_away() {
    let rig = Rig::new();
    rig.store.always(Verb::Settle, Fault::hang());
    let failed = rig.run(Policy::new(), async || Err(failure())).await;
    assert!(is_failure(&failed));
    rig.store.always(Verb::Settle, Fault::NONE);
    rig.until_idle().await;
    assert_eq!(rig.status().await, Some(Status::Failed));
}

#[tokio::test]
async fn a_settle_that_was_under_way_for_too_long_is_sent_again_with_a_new_deadline() {
    let rig = Rig::new();
    rig.store.next(Verb::Settle, [Fault::NONE.gated()]);
    let call = {
        let rig = rig.clone();
        tokio::spawn(async move { rig.run(Policy::new(), async || Ok(1)).await })
    };
    rig.store.until_calls(Verb::Settle, 1).await;
    rig.clock.advance(LIMIT * 3);
    rig.store.open();
    assert_eq!(call.await.unwrap().unwrap(), 1);
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.counts().unconfirmed, 0);
}

// N01, N29
#[tokio::test]
async fn a_late_copy_of_a_settle_changes_nothing() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Settle, [Fault::NONE.leaving_a_copy()]);
    let failed = rig.run(Policy::new(), async || Err(failure())).await;
    assert!(is_failure(&failed));
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    rig.store.deliver_copies().await;
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn a_record_that_the_store_lost_is_written_anew_by_its_success() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let policy = Policy::new();
    let result = rig
        .run(policy, async || {
            rig.lose().await;
            Ok(bodies.add())
        })
        .await;
    assert_eq!(result.unwrap(), 1);
    assert_eq!(rig.counts().record_lost, 1);
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

/// A record past its checkpoint at hold outlives `expire`, and so does its owner's word.
#[tokio::test]
async fn a_settle_goes_on_for_as_long_as_its_record_lives() {
    const EXPIRE: Duration = Duration::from_millis(250);
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let policy = Policy::new().expire(EXPIRE);
    rig.store
        .always(Verb::Settle, Fault::fail(StoreErrorKind::Unavailable));
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
    tokio::time::sleep(EXPIRE * 2).await;
    rig.store.heal();
    rig.until_idle().await;
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

/// Law 10 does not depend on how long the store was away.
#[tokio::test]
async fn a_give_up_goes_on_for_as_long_as_the_record_it_may_have_left() {
    const EXPIRE: Duration = Duration::from_millis(250);
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let policy = Policy::new().expire(EXPIRE);
    rig.store.next(Verb::Claim, [Fault::swallow_the_reply(); 2]);
    rig.store
        .always(Verb::Settle, Fault::fail(StoreErrorKind::Unavailable));
    let refused = rig.count(policy, &bodies).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    tokio::time::sleep(EXPIRE * 2).await;
    rig.store.heal();
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
}
