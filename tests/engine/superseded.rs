//! What the owner hears when its record has gone to somebody else.

use idem_core::engine::Changes;
use idem_core::record::{OperatorReply, Reply, Resolve, Status, Verdict};
use idem_core::store::Store;
use idem_core::{Done, Error, NotDone, Policy};
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{Bodies, Held, LEASE, Rig, failure, is_failure, key, store_key};

const RERUN: Policy = Policy::new().rerun_abandoned().lease(LEASE);

/// The first attempt is cut off from the store's time; a second one has taken over and ended.
async fn overtaken(
    rig: &Rig,
    policy: Policy,
    held: &Held,
) -> tokio::task::JoinHandle<Result<u32, Error>> {
    let first = rig.hold(policy, held).await;
    rig.clock.advance(LEASE);
    assert_eq!(rig.run(policy, async || Ok(2)).await.unwrap(), 2);
    first
}

// E15, N01
#[tokio::test]
async fn a_body_that_was_overtaken_by_a_success_gives_the_winners_result() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = overtaken(&rig, RERUN, &held).await;
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 2);
    assert_eq!(rig.run(RERUN, async || Ok(3)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_body_that_was_overtaken_where_duplicates_are_rejected_is_one() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = overtaken(&rig, RERUN.reject_duplicates(), &held).await;
    held.release();
    let refused = first.await.unwrap();
    assert!(
        matches!(refused, Err(Error::Duplicate { .. })),
        "{refused:?}"
    );
}

// E15, V05, N14
#[tokio::test]
async fn a_late_failure_does_not_touch_the_winners_success() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = {
        let (rig, body) = (rig.clone(), held.clone());
        tokio::spawn(async move {
            rig.run(RERUN, async || {
                body.stay().await;
                Err(failure())
            })
            .await
        })
    };
    held.entered().await;
    rig.clock.advance(LEASE);
    assert_eq!(rig.run(RERUN, async || Ok(2)).await.unwrap(), 2);
    held.release();
    assert!(is_failure(&first.await.unwrap()));
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.run(RERUN, async || Ok(3)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_body_that_was_overtaken_by_a_live_attempt_has_lost_its_lease() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = rig.hold(RERUN, &held).await;
    rig.clock.advance(LEASE);
    let again = Held::new();
    let second = rig.hold(RERUN, &again).await;
    held.release();
    let lost = first.await.unwrap();
    assert!(matches!(lost, Err(Error::LeaseLost { .. })), "{lost:?}");
    again.release();
    assert_eq!(second.await.unwrap().unwrap(), 1);
}

// N41
#[tokio::test]
async fn a_live_attempt_that_an_operator_forgot_is_told() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = rig.hold(Policy::new(), &held).await;
    assert_eq!(rig.idem.forget(&key()).await.unwrap(), Changes::Changed);
    let forgotten = rig.idem.forget(&key()).force().await.unwrap();
    assert_eq!(forgotten, Changes::Done);
    held.release();
    let lost = first.await.unwrap();
    assert!(matches!(lost, Err(Error::LeaseLost { .. })), "{lost:?}");
    assert_eq!(rig.status().await, None);
}

#[tokio::test]
async fn an_operators_result_wins_over_the_bodys_own() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = rig.hold(Policy::new(), &held).await;
    let done = || rig.idem.resolve(&key(), Done(&7));
    assert_eq!(done().await.unwrap(), Changes::Changed);
    assert_eq!(done().force().await.unwrap(), Changes::Done);
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 7);
}

// N40
#[tokio::test]
async fn an_operators_word_about_an_attempt_that_has_ended_meanwhile_is_refused() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = rig.hold(Policy::new().lease(LEASE), &held).await;
    rig.clock.advance(LEASE);
    let op = Resolve {
        fence: rig.record().await.unwrap().fence,
        verdict: Verdict::NotDone,
        force: false,
    };
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    let answer = rig.store.inner().resolve(&store_key(), &op).await.unwrap();
    assert_eq!(Changes::from(answer.reply), Changes::Changed);
    let bodies = Bodies::default();
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 0);
}

// N26, N40
#[tokio::test]
async fn an_operators_word_about_one_attempt_is_not_said_of_the_next() {
    let rig = Rig::new();
    let dies = async || {
        let held = Held::new();
        let attempt = rig.hold(Policy::new().lease(LEASE), &held).await;
        attempt.abort();
        rig.until_abandoned().await;
        rig.record().await.unwrap()
    };
    let first = dies().await;
    let not_done = || rig.idem.resolve(&key(), NotDone).as_read(&first);
    assert_eq!(not_done().await.unwrap(), Changes::Done);
    let second = dies().await;
    assert_eq!(not_done().await.unwrap(), Changes::Changed);
    let bodies = Bodies::default();
    let unknown = rig.count(Policy::new(), &bodies).await.unwrap_err();
    assert_eq!(unknown.code(), "outcome_unknown");
    let done = rig.idem.resolve(&key(), Done(&7)).as_read(&second);
    assert_eq!(done.await.unwrap(), Changes::Done);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 7);
    assert_eq!(bodies.count(), 0);
}

// N29
#[tokio::test]
async fn a_delayed_forget_does_not_delete_a_later_success() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let failed = rig.run(Policy::new(), async || Err(failure())).await;
    assert!(is_failure(&failed));
    rig.store.next(Verb::Forget, [Fault::stay_on_the_wire()]);
    assert!(rig.idem.forget(&key()).await.is_err());
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    let late = rig.store.deliver_copies().await;
    assert_eq!(late, [Reply::Forget(OperatorReply::Changed)]);
    assert_eq!(rig.status().await, Some(Status::Success));
}

// N29
#[tokio::test]
async fn a_delayed_settle_does_not_bring_back_what_was_forgotten() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Settle, [Fault::NONE.leaving_a_copy()]);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(rig.idem.forget(&key()).await.unwrap(), Changes::Done);
    rig.store.deliver_copies().await;
    assert_eq!(rig.status().await, None);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 2);
}
