//! What becomes of a settle that is not answered.

use std::time::Duration;

use idem_core::record::Status;
use idem_core::{Attempt, Error, Policy, StoreErrorKind};
use idem_tests::faulty::{Fault, Verb};
use tracing::Level;

use crate::rig::{Bodies, Held, LEASE, LIMIT, Rig, failure, is_failure};
use crate::saying::Said;

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

/// The next call has the key before the word is sent again.
async fn told_again_behind_the_next_call<F>(
    rig: &Rig,
    policy: Policy,
    body: impl FnOnce() -> F,
) -> Result<u32, Error>
where
    F: Future<Output = Result<u32, Error>>,
{
    let again = Fault::NONE.gated();
    rig.store
        .next(Verb::Settle, [Fault::lose_the_reply(), again]);
    let (next, ended) = (Held::new(), Held::new());
    let first = async {
        let first = rig.run(policy, body).await;
        ended.release();
        first
    };
    let others = async {
        rig.store.until_calls(Verb::Settle, 2).await;
        let held = rig.hold(policy, &next).await;
        rig.store.open();
        ended.stay().await;
        next.release();
        assert_eq!(held.await.unwrap().unwrap(), 1);
    };
    tokio::join!(first, others).0
}

#[tokio::test]
async fn what_leaves_nothing_has_ended_well_although_the_next_call_came_before_the_second_word() {
    for ends_well in [true, false] {
        let rig = Rig::with(|builder| builder.limit(LIMIT * 50));
        let said = Said::default();
        let listens = said.listens(Level::ERROR);
        let body = async || if ends_well { Ok(7) } else { Err(failure()) };
        let policy = Policy::new().forget();
        let told = told_again_behind_the_next_call(&rig, policy, body).await;
        drop(listens);
        if ends_well {
            assert_eq!(told.unwrap(), 7);
        } else {
            assert!(is_failure(&told));
        }
        said.nothing();
        assert_eq!(rig.counts().unconfirmed, 0);
    }
}

/// Somebody else may have had it before it was told.
#[tokio::test]
async fn what_was_told_when_its_lease_was_over_has_lost_its_record() {
    let rig = Rig::with(|builder| builder.limit(LIMIT * 50));
    let away = Fault::fail(StoreErrorKind::Unavailable);
    rig.store.always(Verb::Renew, away);
    let lost = async || {
        let attempt = Attempt::current().expect("this body is guarded");
        attempt.lost().await;
        Ok(7)
    };
    let policy = Policy::new().forget().lease(LEASE);
    let told = told_again_behind_the_next_call(&rig, policy, lost).await;
    assert!(matches!(told, Err(Error::LeaseLost { .. })), "{told:?}");
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
