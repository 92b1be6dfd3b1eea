//! Calls that take a record over whose owner is dead.

use idem_core::Policy;
use idem_tests::rig::Rig;

use crate::first::ends_as;
use crate::ground::{Ground, on_both};
use crate::scene::{Ends, Scene};
use crate::sweep::sweep;

const LEAST: usize = 7;

fn takeover<G: Ground>(policy: Policy, in_doubt: bool) {
    takeover_that_ends::<G>(policy, Ends::Well, in_doubt);
}

fn takeover_that_ends<G: Ground>(policy: Policy, ends: Ends, in_doubt: bool) {
    sweep(
        LEAST,
        async || {
            let scene = Scene::<G>::new(policy, ends).await;
            scene.dies(in_doubt).await;
            scene
        },
        async |scene| scene.call().await,
        async |scene, said, _| ends_as(scene, said).await,
    );
}

// E06: its lease had lapsed before its checkpoint.
pub(crate) fn a_takeover_at_hold<G: Ground>() {
    takeover::<G>(Policy::new(), false);
}

pub(crate) fn a_takeover_with_a_checkpoint_of_its_own<G: Ground>() {
    takeover::<G>(Policy::new().own_checkpoint(), false);
}

pub(crate) fn a_takeover_in_doubt_at_rerun<G: Ground>() {
    takeover::<G>(Policy::new().rerun_abandoned(), true);
}

#[test]
fn a_takeover_that_is_forgotten_and_ones_that_end_in_an_error() {
    let rerun = Policy::new().rerun_abandoned();
    for (policy, ends) in [
        (Policy::new().forget(), Ends::Well),
        (rerun.forget(), Ends::Well),
        (rerun, Ends::Releasing),
        (rerun, Ends::InDoubt),
        (rerun, Ends::Panicking),
    ] {
        takeover_that_ends::<Rig>(policy, ends, policy == rerun);
    }
}

on_both! {
    a_takeover_at_hold
    a_takeover_with_a_checkpoint_of_its_own
    a_takeover_in_doubt_at_rerun
}
