//! Calls whose store gives no answer, or refuses.

use idem_core::{Policy, StoreErrorKind};
use idem_tests::faulty::{Fault, Verb};
use idem_tests::rig::Rig;

use crate::first::ends_as;
use crate::scene::{Ends, Scene};
use crate::sweep::sweep;

const LEAST: usize = 9;

/// The next calls of `verb` have `faults`, then all is well.
fn troubled(least: usize, policy: Policy, ends: Ends, verb: Verb, faults: [Fault; 2]) {
    sweep(
        least,
        async || Scene::<Rig>::new(policy, ends).await,
        async |scene| {
            let store = scene.store();
            store.next(verb, faults.map(Fault::yielding));
            scene.call().await
        },
        async |scene, said, _| ends_as(scene, said).await,
    );
}

const REFUSED: Fault = Fault::fail(StoreErrorKind::Refused);

#[test]
fn a_claim_that_is_sent_again_because_the_first_reply_was_lost() {
    let faults = [Fault::lose_the_reply(), Fault::NONE];
    troubled(LEAST, Policy::new(), Ends::Well, Verb::Claim, faults);
    let policy = Policy::new().own_checkpoint();
    troubled(LEAST, policy, Ends::Well, Verb::Claim, faults);
}

#[test]
fn a_claim_that_is_sent_again_because_the_store_refused_it() {
    let faults = [REFUSED, Fault::NONE];
    troubled(LEAST, Policy::new(), Ends::Well, Verb::Claim, faults);
}

#[test]
fn a_checkpoint_that_is_sent_again() {
    for fault in [Fault::lose_the_reply(), REFUSED] {
        let policy = Policy::new().own_checkpoint();
        let faults = [fault, Fault::NONE];
        troubled(LEAST, policy, Ends::Well, Verb::Renew, faults);
    }
}

/// In the call, and after it in the background: the caller has its result, unconfirmed.
#[test]
fn a_settle_that_is_sent_again_because_the_store_refuses_it() {
    for ends in [Ends::Well, Ends::Failing, Ends::ForGood] {
        for faults in [[REFUSED, Fault::NONE], [REFUSED; 2]] {
            troubled(LEAST, Policy::new(), ends, Verb::Settle, faults);
        }
    }
}

#[test]
fn a_settle_that_is_sent_again_because_its_reply_was_lost() {
    for ends in [Ends::Well, Ends::Failing, Ends::ForGood] {
        let faults = [Fault::lose_the_reply(); 2];
        troubled(LEAST, Policy::new(), ends, Verb::Settle, faults);
    }
}

/// The copies arrive when all is over, and change nothing.
// N30
#[test]
fn a_claim_of_which_copies_stay_on_the_wire() {
    let copied = Fault::NONE.leaving_a_copy().yielding();
    sweep(
        LEAST - 2,
        async || Scene::<Rig>::new(Policy::new().own_checkpoint(), Ends::Well).await,
        async |scene| {
            for verb in [Verb::Claim, Verb::Renew] {
                scene.store().always(verb, copied);
            }
            scene.call().await
        },
        async |scene, said, _| {
            scene.store().deliver_copies().await;
            ends_as(scene, said).await;
        },
    );
}

/// The store has done each claim, and the body runs without having heard of it.
#[test]
fn a_body_that_runs_unguarded() {
    let policy = Policy::new().run_on_store_error();
    let faults = [Fault::lose_the_reply(); 2];
    troubled(LEAST, policy, Ends::Well, Verb::Claim, faults);
}

/// The store has done none: what runs has no guard, and leaves nothing that is stuck.
#[test]
fn a_body_that_runs_unguarded_because_no_claim_was_done() {
    sweep(
        LEAST - 2,
        async || Scene::<Rig>::new(Policy::new().run_on_store_error(), Ends::Well).await,
        async |scene| {
            let away = Fault::fail(StoreErrorKind::Unavailable);
            scene.store().next(Verb::Claim, [away.yielding(); 2]);
            scene.call().await
        },
        async |scene, said, _| {
            assert!(said.is_none_or(|said| said == Ok(1)));
            assert!(!scene.is_live().await, "the key is stuck");
            assert_eq!(scene.call().await, Ok(1));
        },
    );
}
