//! Checkpoints that a body sets itself, before and after a loss of its lease.

use idem_core::record::Status;
use idem_core::{Attempt, Error};
use idem_tests::faulty::{Fault, Verb};

use crate::lease::HOLD;
use crate::lost::{is_lost, never};
use crate::rig::{Bodies, Held, LEASE, Rig};

#[tokio::test]
async fn before_its_checkpoint_a_lost_body_is_dropped_also_at_hold() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.always(Verb::Renew, Fault::hang());
    let lost = rig.run(HOLD.own_checkpoint(), never).await;
    assert!(is_lost(&lost), "{lost:?}");
    rig.until_idle().await;
    // E06: nothing had happened, so that the key is free at once.
    assert_eq!(rig.count(HOLD.own_checkpoint(), &bodies).await.unwrap(), 1);
}

#[tokio::test]
async fn after_its_checkpoint_a_lost_body_may_finish_at_hold() {
    let rig = Rig::new();
    let result = rig.run(HOLD.own_checkpoint(), async || {
        let attempt = Attempt::current().unwrap();
        attempt.checkpoint().await?;
        rig.store.always(Verb::Renew, Fault::hang());
        attempt.lost().await;
        tokio::task::yield_now().await;
        Ok(1)
    });
    assert_eq!(result.await.unwrap(), 1);
    assert_eq!(rig.status().await, Some(Status::Success));
}

// E06, E15
#[tokio::test]
async fn the_checkpoint_of_an_attempt_that_was_taken_over_is_refused() {
    let (rig, held) = (Rig::new(), Held::new());
    let policy = HOLD.own_checkpoint();
    let (running, body) = (rig.clone(), held.clone());
    let first = tokio::spawn(async move {
        let body = async || {
            body.stay().await;
            Attempt::current().unwrap().checkpoint().await?;
            panic!("an effect after a refused checkpoint");
        };
        running.run(policy, body).await
    });
    held.entered().await;
    rig.clock.advance(LEASE);
    assert_eq!(rig.run(policy, async || Ok(2)).await.unwrap(), 2);
    held.release();
    let lost = first.await.unwrap();
    assert!(is_lost(&lost), "{lost:?}");
    assert_eq!(rig.run(policy, async || Ok(3)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_checkpoint_without_an_answer_is_an_error_to_leave_on() {
    let rig = Rig::new();
    rig.store.always(Verb::Renew, Fault::hang());
    let result = rig.run(HOLD.own_checkpoint(), async || {
        Attempt::current().unwrap().checkpoint().await?;
        panic!("an effect without a checkpoint");
    });
    let result = result.await;
    assert!(matches!(result, Err(Error::Store { .. })), "{result:?}");
    assert_eq!(rig.status().await, Some(Status::Failed));
}

#[tokio::test]
async fn a_checkpoint_is_sent_again_when_its_reply_was_lost() {
    let rig = Rig::new();
    rig.store.next(Verb::Renew, [Fault::lose_the_reply()]);
    let result = rig.run(HOLD.own_checkpoint(), async || {
        Attempt::current().unwrap().checkpoint().await?;
        assert!(rig.running().await.unwrap().checkpoint);
        Ok(1)
    });
    assert_eq!(result.await.unwrap(), 1);
}

#[tokio::test]
async fn a_checkpoint_on_foreign_bytes_is_refused() {
    let rig = Rig::new();
    let result = rig.run(HOLD.own_checkpoint(), async || {
        rig.damage();
        Attempt::current().unwrap().checkpoint().await?;
        panic!("an effect without a checkpoint");
    });
    let result = result.await;
    assert!(matches!(result, Err(Error::Damaged { .. })), "{result:?}");
}
