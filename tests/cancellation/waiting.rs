//! Duplicates that wait for the first call, and what becomes of it and of others who wait.

use std::time::Duration;

use idem_core::Policy;
use idem_tests::body::until;
use idem_tests::rig::Rig;

use crate::ground::{Ground, on_both};
use crate::scene::{Ends, Said, Scene};
use crate::sweep::sweep;

/// Of seven: the first may end before a poll that would have found it running.
const LEAST: usize = 5;

/// Long enough for a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

fn waits() -> Policy {
    Policy::new().wait_in_progress().wait(PATIENCE)
}

/// A scene whose first call is in its body, until somebody waits for it or nobody will any more.
async fn held<G: Ground>(policy: Policy, ends: Ends) -> Scene<G> {
    let scene = Scene::<G>::new(policy, ends).await;
    let first = scene.clone();
    scene.beside(async move {
        let body = async || {
            while !first.is_over() && !first.has_waiters().await {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // What is forgotten may be done again.
            if first.ends == Ends::Well && !first.forgets() {
                first.effects.add();
            }
            first.ends.said()
        };
        let (idem, key) = (first.ground().idem(), first.key.clone());
        let results = first.results();
        idem.run_with(key, first.policy, results, None, body).await
    });
    until("the first runs", async || scene.is_live().await).await;
    scene
}

/// Nobody but the first has run, and all hear of it.
async fn all_hear_of_the_first<G: Ground>(scene: &Scene<G>, said: Option<Said>, beside: Vec<Said>) {
    let next = scene.call().await;
    for said in said.into_iter().chain(beside).chain([next]) {
        assert_eq!(said, Ok(1));
    }
    assert_eq!(scene.effects.count(), 1);
    assert_eq!(scene.bodies.count(), 0);
}

// X01
pub(crate) fn a_duplicate_that_waits_and_is_woken<G: Ground>() {
    sweep(
        LEAST,
        async || held::<G>(waits(), Ends::Well).await,
        async |scene| scene.call().await,
        async |scene, said, beside| all_hear_of_the_first(scene, said, beside).await,
    );
}

/// One store wait serves all: whoever leaves must not take it along.
pub(crate) fn a_duplicate_that_waits_beside_another<G: Ground>() {
    sweep(
        LEAST,
        async || held::<G>(waits(), Ends::Well).await,
        async |scene| {
            let other = scene.clone();
            scene.beside(async move { other.call().await });
            scene.call().await
        },
        async |scene, said, beside| {
            assert_eq!(beside.len(), 2);
            all_hear_of_the_first(scene, said, beside).await;
        },
    );
}

/// The first leaves the key to one who waits, which runs its own body.
fn has_its_turn<G: Ground>(policy: Policy, first: Ends) {
    sweep(
        LEAST,
        async || held::<G>(policy, first).await,
        async |scene| scene.ending(Ends::Well).call().await,
        async |scene, said, beside| {
            assert_eq!(beside, [first.said()]);
            assert!(said.is_none_or(|said| said == Ok(1)));
            let own = scene.ending(Ends::Well);
            own.next_hears_what_is_promised().await;
        },
    );
}

pub(crate) fn a_duplicate_that_waits_and_has_its_turn<G: Ground>() {
    has_its_turn::<G>(waits(), Ends::Failing);
}

#[test]
fn a_duplicate_that_waits_for_what_is_released_or_forgotten() {
    has_its_turn::<Rig>(waits(), Ends::Releasing);
    has_its_turn::<Rig>(waits().rerun_abandoned(), Ends::InDoubt);
    has_its_turn::<Rig>(waits().forget(), Ends::Well);
}

on_both! {
    a_duplicate_that_waits_and_is_woken
    a_duplicate_that_waits_beside_another
    a_duplicate_that_waits_and_has_its_turn
}
