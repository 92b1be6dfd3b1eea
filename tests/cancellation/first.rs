//! The first call of a key.

use idem_core::Policy;
use idem_tests::faulty::Fault;
use idem_tests::rig::Rig;

use crate::ground::{Ground, on_both};
use crate::scene::{Ends, Reached, Said, Scene};
use crate::sweep::sweep;

/// Of a call that makes its own claim, runs its body and settles.
const LEAST: usize = 7;

fn first<G: Ground>(policy: Policy, ends: Ends) {
    sweep(
        LEAST,
        async || Scene::<G>::new(policy, ends).await,
        async |scene| scene.call().await,
        async |scene, said, _| ends_as(scene, said).await,
    );
}

/// A call that ended did so in its way; in any case the next one hears what is promised.
pub(crate) async fn ends_as<G: Ground>(scene: &Scene<G>, said: Option<Said>) {
    if let Some(said) = said {
        assert_eq!(said, scene.ends.said());
    }
    let keeps_nothing =
        scene.ends == Ends::Releasing || scene.ends == Ends::Well && scene.forgets();
    if keeps_nothing && scene.reached() == Reached::End {
        let record = scene.ground().idem().peek(&scene.key).await;
        assert!(record.unwrap().is_none(), "something is kept");
    }
    scene.next_hears_what_is_promised().await;
}

// X01, E06: the claim is the checkpoint.
pub(crate) fn a_first_call_at_hold<G: Ground>() {
    first::<G>(Policy::new(), Ends::Well);
}

pub(crate) fn a_first_call_with_a_checkpoint_of_its_own<G: Ground>() {
    first::<G>(Policy::new().own_checkpoint(), Ends::Well);
}

pub(crate) fn a_first_call_at_rerun<G: Ground>() {
    first::<G>(Policy::new().rerun_abandoned(), Ends::Well);
}

pub(crate) fn a_first_call_that_fails<G: Ground>() {
    first::<G>(Policy::new(), Ends::Failing);
}

pub(crate) fn a_first_call_whose_error_is_kept<G: Ground>() {
    first::<G>(Policy::new(), Ends::ForGood);
}

pub(crate) fn a_first_call_that_is_released<G: Ground>() {
    first::<G>(Policy::new(), Ends::Releasing);
}

pub(crate) fn a_first_call_whose_error_says_nothing<G: Ground>() {
    first::<G>(Policy::new(), Ends::InDoubt);
}

pub(crate) fn a_first_call_that_is_forgotten<G: Ground>() {
    first::<G>(Policy::new().forget(), Ends::Well);
}

#[test]
fn a_first_call_of_each_level_that_ends_in_each_way() {
    let levels = [
        Policy::new(),
        Policy::new().own_checkpoint(),
        Policy::new().rerun_abandoned(),
        Policy::new().rerun_abandoned().own_checkpoint(),
    ];
    for level in levels {
        for policy in [level, level.forget()] {
            for ends in [
                Ends::Well,
                Ends::Failing,
                Ends::Releasing,
                Ends::ForGood,
                Ends::InDoubt,
                Ends::Panicking,
            ] {
                println!("{ends:?}, {policy:?}");
                first::<Rig>(policy, ends);
            }
        }
    }
}

on_both! {
    a_first_call_at_hold
    a_first_call_with_a_checkpoint_of_its_own
    a_first_call_at_rerun
    a_first_call_that_fails
    a_first_call_whose_error_is_kept
    a_first_call_that_is_released
    a_first_call_whose_error_says_nothing
    a_first_call_that_is_forgotten
}

#[test]
fn a_first_call_whose_sends_all_come_twice() {
    sweep(
        LEAST,
        async || Scene::<Rig>::new(Policy::new().own_checkpoint(), Ends::Well).await,
        async |scene| {
            scene.store().all(Fault::deliver_twice().yielding());
            scene.call().await
        },
        async |scene, said, _| ends_as(scene, said).await,
    );
}
