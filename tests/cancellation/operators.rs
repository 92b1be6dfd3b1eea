//! What operators say, and what comes before a call: each was done, or it was not.

use idem_core::Error;
use idem_core::engine::{Changes, Done, NotDone};
use idem_core::record::Status;
use idem_tests::rig::Rig;

use crate::scene::{Scene, is};
use crate::sweep::sweep;

/// Of a look and a write.
const LEAST: usize = 5;

type Heard = Option<Result<Changes, Error>>;

/// Whether the word is known to have been heard.
fn was_done(heard: &Heard) -> bool {
    match heard {
        None => false,
        Some(Ok(Changes::Done)) => true,
        Some(other) => panic!("{other:?}"),
    }
}

async fn done() -> Scene<Rig> {
    let scene = Scene::at_hold().await;
    assert_eq!(scene.call().await, Ok(1));
    scene
}

async fn in_doubt() -> Scene<Rig> {
    let scene = Scene::at_hold().await;
    scene.dies(true).await;
    scene
}

/// After a word that nothing had happened.
async fn runs_unless_unsaid(scene: &Scene<Rig>, heard: &Heard) {
    let said = scene.call().await;
    let ran = said == Ok(1) && scene.effects.count() == 1;
    let is_held = is(&said, "outcome_unknown") && scene.bodies.count() == 0;
    assert!(ran || is_held && !was_done(heard), "{heard:?}: {said:?}");
}

#[test]
fn a_forget() {
    sweep(
        LEAST,
        async || done().await,
        async |scene| scene.ground().idem.forget(&scene.key).await,
        async |scene, heard, _| {
            assert_eq!(scene.call().await, Ok(1));
            let runs = scene.bodies.count();
            assert!(runs == 2 || runs == 1 && !was_done(&heard));
            // Said again, it ends what there is now.
            assert_eq!(
                scene.ground().idem.forget(&scene.key).await.unwrap(),
                Changes::Done
            );
        },
    );
}

#[test]
fn a_release() {
    sweep(
        LEAST,
        async || in_doubt().await,
        async |scene| scene.ground().idem.release(&scene.key).await,
        async |scene, heard, _| runs_unless_unsaid(scene, &heard).await,
    );
}

#[test]
fn a_word_that_it_was_not_done() {
    sweep(
        LEAST,
        async || in_doubt().await,
        async |scene| scene.ground().idem.resolve(&scene.key, NotDone).await,
        async |scene, heard, _| runs_unless_unsaid(scene, &heard).await,
    );
}

#[test]
fn a_word_that_it_was_done() {
    sweep(
        LEAST,
        async || in_doubt().await,
        async |scene| scene.ground().idem.resolve(&scene.key, Done(&7)).await,
        async |scene, heard, _| {
            let said = scene.call().await;
            let is_held = is(&said, "outcome_unknown");
            assert!(said == Ok(7) || is_held && !was_done(&heard), "{said:?}");
            assert_eq!(scene.bodies.count(), 0);
        },
    );
}

#[test]
fn a_refusal_of_a_call_that_has_not_come() {
    sweep(
        3,
        async || Scene::<Rig>::at_hold().await,
        async |scene| scene.ground().idem.refuse(&scene.key).await,
        async |scene, heard, _| {
            let said = scene.call().await;
            let ran = said == Ok(1);
            assert!(is(&said, "refused") || ran && heard.is_none(), "{said:?}");
            let again = scene.ground().idem.refuse(&scene.key).await;
            let is_done = matches!(again, Err(Error::Duplicate { .. }));
            assert!(again.is_ok() || ran && is_done, "{again:?}");
        },
    );
}

#[test]
fn looks_at_records() {
    sweep(
        LEAST,
        async || done().await,
        async |scene| {
            let idem = &scene.ground().idem;
            let record = idem.peek(&scene.key).await.unwrap().unwrap();
            assert_eq!(record.status, Status::Success);
            idem.records("swept").await.unwrap().len()
        },
        async |scene, found, _| {
            assert!(found.is_none_or(|found| found == 1));
            assert_eq!(scene.call().await, Ok(1));
            assert_eq!(scene.bodies.count(), 1);
        },
    );
}
