//! Leases that are lost when nobody hears the owner: what becomes of its body, and of its key.

use std::time::{Duration, Instant};

use idem_core::record::{Op, Outcome, Status};
use idem_core::store::StoreKey;
use idem_core::{Attempt, Error, Key, Policy};
use idem_tests::events::Events;
use idem_tests::faulty::{Fault, Verb};
use tracing::Level;

use crate::lease::{HOLD, RERUN};
use crate::rig::{Bodies, Held, LEASE, Rig, failure, key, until};

pub(crate) async fn never() -> Result<u32, Error> {
    std::future::pending().await
}

pub(crate) fn is_lost<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::LeaseLost { .. }))
}

// L01, L08
#[tokio::test]
async fn at_rerun_a_lost_body_is_dropped_and_the_next_holder_has_a_higher_fence() {
    let (rig, begin) = (Rig::new(), Instant::now());
    rig.store.always(Verb::Renew, Fault::hang());
    let lost = rig.run(RERUN, never).await;
    assert!(is_lost(&lost), "{lost:?}");
    assert!(begin.elapsed() >= LEASE * 7 / 10, "{:?}", begin.elapsed());
    assert_eq!(rig.counts().lease_lost, 1);
    let fence = rig.record().await.unwrap().fence;
    rig.until_idle().await;
    assert!(rig.is_abandoned().await);

    let next = rig.run(RERUN, async || {
        let attempt = Attempt::current().unwrap();
        assert!(attempt.fence() > fence && attempt.is_takeover());
        Ok(2)
    });
    assert_eq!(next.await.unwrap(), 2);
}

#[tokio::test]
async fn at_hold_a_lost_body_is_told_may_finish_and_settles() {
    let rig = Rig::new();
    rig.store.always(Verb::Renew, Fault::hang());
    let result = rig.run(HOLD, async || {
        let attempt = Attempt::current().unwrap();
        assert!(!attempt.is_lost());
        attempt.lost().await;
        assert!(attempt.is_lost());
        Ok(1)
    });
    assert_eq!(result.await.unwrap(), 1);
    assert_eq!(rig.counts().lease_lost, 1);
    assert_eq!(rig.status().await, Some(Status::Success));
}

/// The lease counts from the send of the claim, not from the moment at which its answer is heard.
#[tokio::test]
async fn a_body_whose_claim_was_heard_too_late_does_not_begin() {
    for policy in [RERUN, HOLD, HOLD.own_checkpoint()] {
        let rig = Rig::with(|builder| builder.limit(LEASE * 3));
        let bodies = Bodies::default();
        rig.store
            .next(Verb::Claim, [Fault::NONE.after(LEASE * 9 / 10)]);
        let lost = rig.count(policy, &bodies).await;
        assert!(is_lost(&lost), "{lost:?}");
        assert_eq!(bodies.count(), 0);
        rig.until_idle().await;
        assert_eq!(rig.outcomes(), [Outcome::GiveUp]);
        assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
    }
}

/// At hold nobody takes the key over, but an operator may give it to somebody else.
#[tokio::test]
async fn a_body_whose_record_was_forgotten_before_it_began_does_not_run_after_another() {
    let rig = Rig::with(|builder| builder.limit(LEASE * 10));
    let bodies = Bodies::default();
    rig.store
        .next(Verb::Claim, [Fault::NONE.with_gated_answer()]);
    let (late, counted) = (rig.clone(), bodies.clone());
    let late = tokio::spawn(async move { late.count(HOLD, &counted).await });
    until("it is granted", async || rig.is_live().await).await;
    let granted = Instant::now();
    rig.clock.advance(LEASE);
    rig.idem.forget(&key()).await.unwrap();
    assert_eq!(rig.count(HOLD, &bodies).await.unwrap(), 1);
    // Its lease is over by its own clock, too, before it hears that it had one.
    tokio::time::sleep(LEASE.saturating_sub(granted.elapsed())).await;
    rig.store.open();
    let late = late.await.unwrap();
    assert!(is_lost(&late), "{late:?}");
    assert_eq!(bodies.count(), 1);
}

/// As after a kill: nothing is heard of the attempt any more.
async fn dies_in_silence(rig: &Rig, policy: Policy) {
    let held = Held::new();
    let call = rig.hold(policy, &held).await;
    rig.store.always(Verb::Settle, Fault::hang());
    call.abort();
    assert!(call.await.is_err());
}

// E01, E02, E06, N05
#[tokio::test]
async fn the_key_of_a_dead_attempt_is_held_for_the_lease_and_not_for_the_retention() {
    for (policy, runs) in [
        (HOLD, false),
        (HOLD.own_checkpoint(), true),
        (RERUN, true),
        (RERUN.own_checkpoint(), true),
    ] {
        let (rig, bodies) = (Rig::new(), Bodies::default());
        let policy = policy.expire(Duration::from_hours(24));
        dies_in_silence(&rig, policy).await;
        rig.clock.advance(LEASE * 9 / 10);
        let refused = rig.count(policy, &bodies).await;
        assert!(
            matches!(refused, Err(Error::InProgress { .. })),
            "{refused:?}"
        );
        rig.clock.advance(LEASE / 10);
        rig.store.always(Verb::Settle, Fault::NONE);
        let next = rig.count(policy, &bodies).await;
        if runs {
            assert_eq!(next.unwrap(), 1);
        } else {
            assert!(
                matches!(next, Err(Error::OutcomeUnknown { .. })),
                "{next:?}"
            );
        }
    }
}

/// Whether each renewal that was sent could make a record anew that is not there.
fn rebuilding(rig: &Rig) -> Vec<bool> {
    let renewed = |op| match op {
        Op::Renew(renew) => Some(renew.echo.checkpoint),
        _ => None,
    };
    rig.store.seen().into_iter().filter_map(renewed).collect()
}

/// Somebody else may have had the record meanwhile, ended it, and left none.
#[tokio::test]
async fn a_body_that_has_to_go_makes_no_record_anew() {
    let rig = Rig::new();
    rig.store.always(Verb::Renew, Fault::hang());
    assert!(is_lost(&rig.run(RERUN, never).await));
    rig.until_idle().await;
    let rebuilding = rebuilding(&rig);
    assert_eq!(rebuilding.first(), Some(&true), "{rebuilding:?}");
    assert_eq!(rebuilding.last(), Some(&false), "{rebuilding:?}");
}

/// What stands at a key whose store lost the record while its renewal was under way, and whose body
/// then gives `result`.
async fn behind_a_renewal(policy: Policy, result: Result<u32, Error>) -> Option<Status> {
    let rig = Rig::with(|builder| builder.limit(LEASE * 10));
    rig.store.next(Verb::Renew, [Fault::NONE.gated()]);
    let (body, given) = (rig.clone(), result.clone());
    let call = tokio::spawn(async move {
        let ends = async || {
            body.store.until_calls(Verb::Renew, 1).await;
            body.lose().await;
            given
        };
        body.run(policy, ends).await
    });
    rig.store.until_calls(Verb::Renew, 1).await;
    let is_gone = async || rig.status().await.is_none();
    until("its record is lost", is_gone).await;
    rig.store.open();
    assert_eq!(call.await.unwrap().is_ok(), result.is_ok());
    rig.until_idle().await;
    let last = rig.store.seen().pop();
    assert!(matches!(last, Some(Op::Settle(_))), "{last:?}");
    rig.status().await
}

#[tokio::test]
async fn a_word_that_leaves_no_result_comes_behind_a_renewal_that_could_make_its_record_anew() {
    let failed = behind_a_renewal(HOLD, Err(failure())).await;
    assert_eq!(failed, Some(Status::Failed));
    assert_eq!(behind_a_renewal(HOLD.forget(), Ok(1)).await, None);
}

#[tokio::test]
async fn what_a_body_has_left_running_is_told_that_its_attempt_has_ended() {
    for is_dropped in [true, false] {
        let (rig, held) = (Rig::new(), Held::new());
        let (body, call) = (held.clone(), rig.clone());
        let (left, watcher) = tokio::sync::oneshot::channel();
        let call = tokio::spawn(async move {
            call.run(RERUN, async || {
                let attempt = Attempt::current().unwrap();
                let watching = tokio::spawn(async move {
                    attempt.lost().await;
                    attempt.is_lost()
                });
                assert!(left.send(watching).is_ok());
                body.stay().await;
                Ok(1)
            })
            .await
        });
        let watching = watcher.await.unwrap();
        assert!(!watching.is_finished());
        if is_dropped {
            call.abort();
        } else {
            held.release();
        }
        assert!(watching.await.unwrap());
        assert_eq!(call.await.is_err(), is_dropped);
        assert_eq!(rig.counts().lease_lost, 0);
    }
}

#[tokio::test]
async fn an_event_that_can_not_be_said_ends_neither_the_stop_of_a_body_nor_other_heartbeats() {
    // What prints events panics where nobody reads them any more.
    let broken = |text: &str| assert!(!text.contains("unheard"), "nobody reads this");
    tracing::subscriber::set_global_default(Events::of(Level::ERROR, broken)).unwrap();
    let rig = Rig::new();
    let unheard = Key::new("unheard", "A").unwrap();
    let place = StoreKey::new("idem", &unheard).unwrap();
    rig.store.on_key(Verb::Renew, &place, Fault::hang());
    let lost = rig.idem.run(unheard, RERUN, never).await;
    assert!(is_lost(&lost), "{lost:?}");
    let renewed = rig.store.calls(Verb::Renew);
    let later = rig.run(RERUN, async || {
        rig.store.until_calls(Verb::Renew, renewed + 2).await;
        Ok(1)
    });
    assert_eq!(later.await.unwrap(), 1);
}
