//! What waits is woken in every interleaving that is tried, and each mistake is found in one.

use std::env;
use std::panic::catch_unwind;

use idem_interleavings::{SCENES, Scene};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner};

/// How many interleavings of each scene are tried; `IDEM_INTERLEAVINGS` sets another number.
fn tried() -> usize {
    let number = env::var("IDEM_INTERLEAVINGS").ok();
    number.and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

fn holds(scene: &Scene) -> bool {
    let (_, _, _, run) = *scene;
    catch_unwind(|| Runner::new(RandomScheduler::new(tried()), Config::new()).run(run)).is_ok()
}

fn scenes(is_right: bool) -> impl Iterator<Item = &'static Scene> {
    SCENES.iter().filter(move |scene| scene.2 == is_right)
}

#[test]
fn nobody_who_waits_is_forgotten() {
    for scene in scenes(true) {
        assert!(holds(scene), "{}", scene.0);
    }
}

#[test]
fn every_mistake_is_found_in_some_interleaving() {
    let missed: Vec<_> = scenes(false)
        .filter(|scene| holds(scene))
        .map(|scene| (scene.0, scene.1))
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
