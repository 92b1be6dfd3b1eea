//! The end of a process: a drain that is dropped and called again, and calls that are dropped while
//! one waits.

use std::time::Duration;

use idem_core::Policy;
use idem_tests::body::until;
use idem_tests::rig::Rig;

use crate::scene::{Ends, Failure, Said, Scene, is};
use crate::sweep::sweep;

/// Long enough for a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

impl Scene<Rig> {
    async fn drain(&self, timeout: Duration) -> usize {
        self.ground().idem.drain(timeout).await
    }

    /// A body that has its effect, and stays until all is over.
    async fn stay(&self) -> Said {
        let body = async || {
            self.effects.add();
            while !self.is_over() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(1)
        };
        let (idem, key) = (&self.ground().idem, self.key.clone());
        idem.run_with(key, self.policy, self.results(), None, body)
            .await
    }
}

/// A scene whose first call has had its effect, and stays.
async fn staying(policy: Policy) -> Scene<Rig> {
    let scene = Scene::new(policy, Ends::Well).await;
    let first = scene.clone();
    scene.beside(async move { first.stay().await });
    until("it stays", async || scene.effects.count() == 1).await;
    scene
}

/// Whoever had the effect has ended well, or was stopped and left it to the next, as was promised.
async fn has_ended_or_was_stopped(scene: &Scene<Rig>, said: &Said) {
    assert!(!scene.is_live().await, "the key is stuck");
    assert_eq!(scene.drain(Duration::ZERO).await, 0);
    let (next, bodies) = (scene.call().await, scene.bodies.count());
    let is_as_promised = if *said == Ok(1) {
        next == Ok(1) && bodies == 0
    } else if scene.reruns() {
        is(said, "lease_lost") && next == Ok(1) && bodies == 1
    } else {
        is(said, "lease_lost") && is(&next, "outcome_unknown") && bodies == 0
    };
    assert!(is_as_promised, "{said:?}, then {next:?}");
    scene.has_no_second_effect();
}

// O09
#[test]
fn a_drain_that_waits_for_a_body() {
    sweep(
        2,
        async || staying(Policy::new()).await,
        async |scene| {
            scene.lets_go();
            scene.drain(PATIENCE).await
        },
        async |scene, stopped, beside| {
            assert!(stopped.is_none_or(|stopped| stopped == 0));
            assert_eq!(beside, [Ok(1)]);
            has_ended_or_was_stopped(scene, &Ok(1)).await;
        },
    );
}

fn a_drain_that_stops_a_body(policy: Policy) {
    sweep(
        2,
        async || staying(policy).await,
        async |scene| scene.drain(Duration::ZERO).await,
        async |scene, stopped, beside| {
            if let Some(stopped) = stopped {
                assert_eq!(stopped, 1);
                assert!(is(&beside[0], "lease_lost"));
            }
            has_ended_or_was_stopped(scene, &beside[0]).await;
        },
    );
}

// O09
#[test]
fn a_drain_that_stops_a_body_at_hold() {
    a_drain_that_stops_a_body(Policy::new());
}

#[test]
fn a_drain_that_stops_a_body_at_rerun() {
    a_drain_that_stops_a_body(Policy::new().rerun_abandoned());
}

/// Whoever waits for the body that is stopped must not be the next to run it, and leave it.
#[test]
fn a_drain_that_stops_a_body_and_one_who_waits_for_it() {
    let policy = Policy::new().rerun_abandoned().wait_in_progress();
    sweep(
        2,
        async || {
            let scene = staying(policy.wait(PATIENCE)).await;
            let waiter = scene.clone();
            scene.beside(async move { waiter.stay().await });
            until("it waits", async || scene.has_waiters().await).await;
            scene
        },
        async |scene| scene.drain(Duration::ZERO).await,
        async |scene, stopped, beside| {
            let sent_away = |said: &Said| is(said, "in_progress");
            let ended = |said: &Said| *said == Ok(1) || is(said, "lease_lost") || sent_away(said);
            assert!(beside.iter().all(ended), "{beside:?}");
            assert!(stopped.is_none() || !beside.contains(&Ok(1)), "{beside:?}");
            assert!(!scene.is_live().await, "the key is stuck");
            assert_eq!(scene.drain(Duration::ZERO).await, 0);
            assert_eq!(scene.call().await, Ok(1));
        },
    );
}

/// Both leave together: what the drain has begun to stop, and what began behind it.
#[test]
fn a_drain_and_the_call_that_it_stops() {
    for policy in [Policy::new(), Policy::new().rerun_abandoned()] {
        sweep(
            2,
            async || Scene::new(policy, Ends::Well).await,
            async |scene| tokio::join!(scene.stay(), scene.drain(Duration::ZERO)),
            async |scene, ended, _| match ended {
                Some((said, stopped)) => {
                    assert_eq!(stopped, 1);
                    has_ended_or_was_stopped(scene, &said).await;
                }
                None if scene.effects.count() == 0 => {
                    assert!(!scene.is_live().await, "the key is stuck");
                    assert_eq!(scene.call().await, Ok(1));
                }
                None => {
                    let left = Err(Failure::Guard("lease_lost".to_owned()));
                    has_ended_or_was_stopped(scene, &left).await;
                }
            },
        );
    }
}

/// A drain waits for what a dropped call has left to the background, too.
#[test]
fn a_call_that_is_dropped_while_a_drain_waits() {
    for (policy, ends) in [
        (Policy::new(), Ends::Well),
        (Policy::new().own_checkpoint(), Ends::InDoubt),
        (Policy::new().rerun_abandoned(), Ends::Releasing),
        (Policy::new().forget(), Ends::Well),
    ] {
        sweep(
            7,
            async || {
                let scene = Scene::new(policy, ends).await;
                let (other, drained) = (scene.with_another_key(), scene.clone());
                let staying = other.clone();
                scene.beside(async move { staying.stay().await });
                until("it stays", async || other.effects.count() == 1).await;
                scene.beside(async move {
                    assert_eq!(drained.drain(PATIENCE).await, 0);
                    assert!(drained.is_over(), "it did not wait");
                    assert!(!drained.is_live().await, "it waited too short");
                    Ok(1)
                });
                // The drain begins.
                tokio::task::yield_now().await;
                scene
            },
            async |scene| scene.call().await,
            async |scene, said, beside| {
                assert!(said.is_none_or(|said| said == scene.ends.said()));
                assert_eq!(beside, [Ok(1), Ok(1)]);
                scene.next_hears_what_is_promised().await;
            },
        );
    }
}
