//! The sweep finds what it is there for: calls that nobody guards, as one writes them by hand, and
//! an engine that is broken. It is broken from outside: its store does not hear what its background
//! says, or hears something else, as if that had been said.

use std::thread;
use std::time::Duration;

use idem_core::Policy;
use idem_core::record::{Claim, ClaimReply, Outcome, Settle, StoreTime};
use idem_core::store::{Store, StoreKey};
use idem_tests::attempt::{TERMS, claim, owner};
use idem_tests::rig::Rig;

use crate::first::ends_as;
use crate::scene::{Ends, Said, Scene};
use crate::sweep::sweep;

/// The number of the attempt.
const BY_HAND: u64 = 8;

const NEVER: StoreTime = StoreTime::from_micros(u64::MAX);

impl Scene<Rig> {
    fn store_key(&self) -> StoreKey {
        StoreKey::new(self.ground().idem.namespace(), &self.key).unwrap()
    }

    async fn claim_by_hand(&self) {
        let claim = Claim {
            not_after: NEVER,
            ..claim(BY_HAND, StoreTime::from_micros(0), TERMS)
        };
        let claimed = self.store().claim(&self.store_key(), &claim).await;
        assert!(matches!(claimed.unwrap().reply, ClaimReply::Claimed(_)));
    }

    async fn settle_by_hand(&self, outcome: Outcome) {
        let settle = Settle {
            owner: owner(BY_HAND),
            terms: TERMS,
            outcome,
            not_after: NEVER,
            echo: None,
        };
        let settled = self.store().settle(&self.store_key(), &settle).await;
        settled.unwrap();
    }

    async fn run_by_hand(&self) -> Said {
        let said = self.body().await;
        let result = b"1".as_slice().into();
        self.settle_by_hand(Outcome::Success(Some(result))).await;
        said
    }
}

/// Whoever is dropped leaves the key to its lease.
#[test]
#[should_panic(expected = "the key is stuck")]
fn a_call_that_does_nothing_when_it_is_dropped_is_found_out() {
    sweep(
        1,
        async || Scene::at_hold().await,
        async |scene| {
            scene.claim_by_hand().await;
            scene.run_by_hand().await
        },
        async |scene, _, _| scene.next_hears_what_is_promised().await,
    );
}

/// The record of whoever is dropped is deleted, as after an error.
#[test]
#[should_panic(expected = "Body: Ok(1), ran: true")]
fn a_call_whose_record_is_deleted_when_it_is_dropped_is_found_out() {
    sweep(
        1,
        async || Scene::at_hold().await,
        async |scene| {
            scene.claim_by_hand().await;
            scene.run_by_hand().await
        },
        async |scene, said, _| {
            if said.is_none() {
                scene.settle_by_hand(Outcome::Release).await;
            }
            scene.next_hears_what_is_promised().await;
        },
    );
}

/// An engine whose background says this instead of what it has to say.
fn broken_by(ends: Ends, mishear: fn(&Settle) -> Option<Settle>) {
    sweep(
        1,
        async || {
            let scene = Scene::new(Policy::new(), ends).await;
            scene.store().mishear(mishear);
            scene
        },
        async |scene: Scene<Rig>| scene.call().await,
        async |scene, said, _| ends_as(scene, said).await,
    );
}

/// Whether nobody's call says it.
fn is_in_the_background() -> bool {
    thread::current().name() == Some("idem")
}

fn instead(settle: &Settle, of: &Outcome, said: Outcome) -> Settle {
    let mut settle = settle.clone();
    if settle.outcome == *of {
        settle.outcome = said;
    }
    settle
}

/// That its words are looked at breaks nothing.
#[test]
fn an_engine_whose_words_are_heard_as_they_are_passes() {
    for ends in [Ends::Well, Ends::Failing, Ends::InDoubt] {
        broken_by(ends, |settle| Some(settle.clone()));
    }
}

#[test]
#[should_panic(expected = "the key is stuck")]
fn an_engine_that_gives_no_claim_up_is_found_out() {
    broken_by(Ends::Well, |settle| {
        (settle.outcome != Outcome::GiveUp).then(|| settle.clone())
    });
}

#[test]
#[should_panic(expected = "the key is stuck")]
fn an_engine_that_abandons_no_attempt_is_found_out() {
    broken_by(Ends::Well, |settle| {
        (settle.outcome != Outcome::Abandon).then(|| settle.clone())
    });
}

#[test]
#[should_panic(expected = "the key is stuck")]
fn an_engine_whose_settles_do_not_go_on_is_found_out() {
    broken_by(Ends::Well, |settle| {
        let goes_on = matches!(settle.outcome, Outcome::Success(_)) && is_in_the_background();
        (!goes_on).then(|| settle.clone())
    });
}

#[test]
#[should_panic(expected = "Body: Ok(1), ran: true")]
fn an_engine_that_releases_where_it_has_to_abandon_is_found_out() {
    broken_by(Ends::Well, |settle| {
        Some(instead(settle, &Outcome::Abandon, Outcome::Release))
    });
}

#[test]
#[should_panic(expected = "Nothing: Err(Guard(\"outcome_unknown\")), ran: false")]
fn an_engine_that_abandons_where_it_has_to_give_up_is_found_out() {
    broken_by(Ends::Well, |settle| {
        Some(instead(settle, &Outcome::GiveUp, Outcome::Abandon))
    });
}

#[test]
#[should_panic(expected = "End: Err(Guard(\"outcome_unknown\")), ran: false")]
fn an_engine_that_abandons_what_has_failed_is_found_out() {
    broken_by(Ends::Failing, |settle| {
        Some(instead(settle, &Outcome::Failed, Outcome::Abandon))
    });
}

#[test]
#[should_panic(expected = "something is kept")]
fn an_engine_that_keeps_what_it_has_to_release_is_found_out() {
    broken_by(Ends::Releasing, |settle| {
        Some(instead(settle, &Outcome::Release, Outcome::Failed))
    });
}

/// A call that leaves something behind.
fn leaving_behind(left: impl Fn(&Scene<Rig>) + Sync) {
    sweep(
        1,
        async || {
            let mut scene = Scene::at_hold().await;
            scene.patience = Duration::from_secs(2);
            scene
        },
        async |scene| {
            left(&scene);
            scene.call().await
        },
        async |_, _, _| {},
    );
}

#[test]
#[should_panic(expected = "never: no task is left")]
fn an_engine_that_leaves_a_task_is_found_out() {
    leaving_behind(|_| drop(tokio::spawn(std::future::pending::<()>())));
}

#[test]
#[should_panic(expected = "never: the engine is gone")]
fn an_engine_that_is_kept_is_found_out() {
    leaving_behind(|scene| std::mem::forget(scene.store().clone()));
}
