//! Calls that ask what an attempt that died has done.

use idem_core::{Policy, Recovered, idempotent};

use crate::ground::{Ground, on_both};
use crate::scene::{Ends, Failure, Said, Scene, is};
use crate::sweep::sweep;

const LEAST: usize = 6;

impl<G: Ground> Scene<G> {
    /// Tells the truth. Whoever asks is the only attempt there is, so what was not done can not be
    /// done any more.
    async fn look_up(&self) -> Result<Recovered<u32>, Failure> {
        tokio::task::yield_now().await;
        Ok(match self.effects.count() {
            0 => Recovered::NotDone,
            _ => Recovered::Done(1),
        })
    }

    async fn say_nothing(&self) -> Result<Recovered<u32>, Failure> {
        tokio::task::yield_now().await;
        Ok(Recovered::Unknown)
    }

    #[idempotent(
        prefix = "swept",
        key = self.number,
        engine = self.ground().idem(),
        recover = self.look_up()
    )]
    async fn recover(&self) -> Said {
        self.body().await
    }

    #[idempotent(
        prefix = "swept",
        key = self.number,
        engine = self.ground().idem(),
        checkpoint = true,
        recover = self.look_up()
    )]
    async fn recover_marked(&self) -> Said {
        self.body().await
    }

    #[idempotent(
        prefix = "swept",
        key = self.number,
        engine = self.ground().idem(),
        recover = self.say_nothing()
    )]
    async fn recover_nothing(&self) -> Said {
        self.body().await
    }
}

/// A scene whose first owner died in doubt.
async fn in_doubt<G: Ground>(policy: Policy) -> Scene<G> {
    let scene = Scene::new(policy, Ends::Well).await;
    scene.dies(true).await;
    scene
}

/// However often it is dropped, whoever asks next comes to one effect.
fn comes_to_one_effect<G: Ground>(
    begin: impl AsyncFn() -> Scene<G> + Sync,
    call: impl AsyncFn(&Scene<G>) -> Said + Sync,
) {
    sweep(
        LEAST,
        async || begin().await,
        async |scene| call(&scene).await,
        async |scene, said, _| {
            assert!(!scene.is_live().await, "the key is stuck");
            let next = call(scene).await;
            for said in said.into_iter().chain([next]) {
                assert_eq!(said, Ok(1));
            }
            assert_eq!(scene.effects.count(), 1);
        },
    );
}

pub(crate) fn a_takeover_that_hears_that_nothing_was_done<G: Ground>() {
    comes_to_one_effect(async || in_doubt::<G>(Policy::new()).await, Scene::recover);
}

pub(crate) fn a_takeover_that_hears_so_before_its_own_checkpoint<G: Ground>() {
    let marks = Policy::new().own_checkpoint();
    comes_to_one_effect(async || in_doubt::<G>(marks).await, Scene::recover_marked);
}

pub(crate) fn a_takeover_that_hears_that_all_was_done<G: Ground>() {
    let begin = async || {
        let scene = in_doubt::<G>(Policy::new()).await;
        scene.effects.add();
        scene
    };
    comes_to_one_effect(begin, Scene::recover);
}

pub(crate) fn a_takeover_of_which_nobody_can_say_anything<G: Ground>() {
    sweep(
        LEAST,
        async || in_doubt::<G>(Policy::new()).await,
        async |scene| scene.recover_nothing().await,
        async |scene, said, _| {
            let next = scene.recover_nothing().await;
            for said in said.into_iter().chain([next]) {
                assert!(is(&said, "outcome_unknown"), "{said:?}");
            }
            assert_eq!(scene.bodies.count(), 0);
        },
    );
}

on_both! {
    a_takeover_that_hears_that_nothing_was_done
    a_takeover_that_hears_so_before_its_own_checkpoint
    a_takeover_that_hears_that_all_was_done
    a_takeover_of_which_nobody_can_say_anything
}
