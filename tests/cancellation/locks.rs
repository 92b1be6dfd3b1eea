//! Locks: free again at once, whoever was about to get one, had one or gave it back.

use std::time::Duration;

use idem_core::{Error, LockGuard, locked};

use crate::ground::{Ground, on_both};
use crate::scene::{Said, Scene};
use crate::sweep::sweep;

const PATIENCE: Duration = Duration::from_mins(1);

impl<G: Ground> Scene<G> {
    async fn acquire(&self) -> Result<LockGuard, Error> {
        self.ground().idem().lock(self.key.clone()).acquire().await
    }

    async fn wait_for_the_lock(&self) -> Result<LockGuard, Error> {
        let lock = self.ground().idem().lock(self.key.clone());
        lock.wait(PATIENCE).acquire().await
    }

    async fn somebody_waits(&self) -> bool {
        let record = self.ground().idem().peek(&self.key.of_lock()).await;
        let running = record.unwrap().and_then(|record| record.running);
        running.is_some_and(|running| running.waiters)
    }

    #[locked(prefix = "swept", key = self.number, engine = self.ground().idem())]
    async fn work(&self) -> Said {
        self.body().await
    }
}

/// Nobody holds it, and it can be had again.
async fn is_free<G: Ground>(scene: &Scene<G>) {
    let record = scene.ground().idem().peek(&scene.key.of_lock()).await;
    assert!(record.unwrap().is_none(), "the lock is stuck");
    scene.acquire().await.unwrap().release().await.unwrap();
}

pub(crate) fn an_acquire<G: Ground>() {
    sweep(
        3,
        async || Scene::<G>::at_hold().await,
        async |scene| drop(scene.acquire().await.unwrap()),
        async |scene, _, _| is_free(scene).await,
    );
}

// L04
pub(crate) fn an_acquire_that_waits_for_the_holder<G: Ground>() {
    sweep(
        6,
        async || {
            let scene = Scene::<G>::at_hold().await;
            let held = scene.acquire().await.unwrap();
            let holder = scene.clone();
            scene.beside(async move {
                while !holder.is_over() && !holder.somebody_waits().await {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                held.release().await?;
                Ok(1)
            });
            scene
        },
        async |scene| drop(scene.wait_for_the_lock().await.unwrap()),
        async |scene, _, holder| {
            assert_eq!(holder, [Ok(1)]);
            is_free(scene).await;
        },
    );
}

pub(crate) fn a_release<G: Ground>() {
    sweep(
        5,
        async || Scene::<G>::at_hold().await,
        async |scene| {
            let held = scene.acquire().await.unwrap();
            held.release().await.unwrap();
        },
        async |scene, _, _| is_free(scene).await,
    );
}

// X03
pub(crate) fn a_locked_function<G: Ground>() {
    sweep(
        7,
        async || Scene::<G>::at_hold().await,
        async |scene| scene.work().await,
        async |scene, said, _| {
            assert!(said.is_none_or(|said| said == Ok(1)));
            is_free(scene).await;
        },
    );
}

on_both! {
    an_acquire
    an_acquire_that_waits_for_the_holder
    a_release
    a_locked_function
}
