//! The first call of a key.

use idem_core::Policy;
use idem_tests::faulty::Fault;
use idem_tests::rig::Rig;

use crate::ground::{Ground, on_both};
use crate::scene::{Ends, Failure, Said, Scene};
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
        let expected = match scene.ends {
            Ends::Well => Ok(1),
            Ends::Failing | Ends::ForGood => Err(Failure::Declined),
        };
        assert_eq!(said, expected);
    }
    scene.next_hears_what_is_promised().await;
}

// X01, E06: the claim is the checkpoint.
fn a_first_call_at_hold<G: Ground>() {
    first::<G>(Policy::new(), Ends::Well);
}

fn a_first_call_with_a_checkpoint_of_its_own<G: Ground>() {
    first::<G>(Policy::new().own_checkpoint(), Ends::Well);
}

fn a_first_call_at_rerun<G: Ground>() {
    first::<G>(Policy::new().rerun_abandoned(), Ends::Well);
}

fn a_first_call_that_fails<G: Ground>() {
    first::<G>(Policy::new(), Ends::Failing);
}

fn a_first_call_whose_error_is_kept<G: Ground>() {
    first::<G>(Policy::new(), Ends::ForGood);
}

on_both! {
    a_first_call_at_hold
    a_first_call_with_a_checkpoint_of_its_own
    a_first_call_at_rerun
    a_first_call_that_fails
    a_first_call_whose_error_is_kept
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
