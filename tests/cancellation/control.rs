//! The sweep finds what it is there for: calls that nobody guards, as one writes them by hand.

use idem_core::record::{Claim, ClaimReply, Outcome, Settle, StoreTime};
use idem_core::store::{Store, StoreKey};
use idem_tests::attempt::{TERMS, claim, owner};
use idem_tests::rig::Rig;

use crate::scene::{Said, Scene};
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
