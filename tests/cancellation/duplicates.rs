//! Calls that find a record which is not theirs, and leave it as it is.

use idem_core::{Fingerprint, Policy};

use crate::ground::{Ground, on_both};
use crate::scene::{Ends, Failure, Said, Scene, is};
use crate::sweep::sweep;

const LEAST: usize = 3;

/// A duplicate is dropped; the one after it hears what it would have heard.
fn duplicate<G: Ground>(
    begin: impl AsyncFn() -> Scene<G> + Sync,
    call: impl AsyncFn(&Scene<G>) -> Said + Sync,
    hears: impl Fn(&Said) -> bool + Sync,
) {
    sweep(
        LEAST,
        async || begin().await,
        async |scene| call(&scene).await,
        async |scene, said, _| {
            let before = (scene.bodies.count(), scene.effects.count());
            let next = call(scene).await;
            for said in [said, Some(next)].into_iter().flatten() {
                assert!(hears(&said), "{said:?}");
            }
            assert_eq!((scene.bodies.count(), scene.effects.count()), before);
        },
    );
}

/// A scene whose first call has ended.
async fn done<G: Ground>(policy: Policy, ends: Ends) -> Scene<G> {
    let scene = Scene::new(policy, ends).await;
    let _ = scene.call().await;
    assert_eq!(scene.bodies.count(), 1);
    scene
}

pub(crate) fn a_duplicate_that_replays<G: Ground>() {
    duplicate::<G>(
        async || done(Policy::new(), Ends::Well).await,
        Scene::call,
        |said| *said == Ok(1),
    );
}

pub(crate) fn a_duplicate_that_gets_the_kept_error<G: Ground>() {
    duplicate::<G>(
        async || done(Policy::new(), Ends::ForGood).await,
        Scene::call,
        |said| *said == Err(Failure::Declined),
    );
}

pub(crate) fn a_duplicate_with_another_payload<G: Ground>() {
    let with = |payload| Some(Fingerprint::from_bytes([payload; 16]));
    duplicate::<G>(
        async || {
            let scene = Scene::at_hold().await;
            assert_eq!(scene.call_with(scene.policy, with(1)).await, Ok(1));
            scene
        },
        async |scene: &Scene<G>| scene.call_with(scene.policy, with(2)).await,
        |said| is(said, "mismatch"),
    );
}

pub(crate) fn a_duplicate_of_an_outcome_that_nobody_knows<G: Ground>() {
    duplicate::<G>(
        async || {
            let scene = Scene::at_hold().await;
            scene.dies(true).await;
            scene
        },
        Scene::call,
        |said| is(said, "outcome_unknown"),
    );
}

on_both! {
    a_duplicate_that_replays
    a_duplicate_that_gets_the_kept_error
    a_duplicate_with_another_payload
    a_duplicate_of_an_outcome_that_nobody_knows
}
