//! `detach = true`: whoever leaves takes the call along until its body has begun, and then never.

use idem_core::{Policy, idempotent};
use idem_tests::rig::Rig;

use crate::scene::{Ends, Reached, Said, Scene};
use crate::sweep::sweep;

#[idempotent(
    prefix = "swept",
    key = scene.number,
    engine = scene.ground().idem,
    detach = true
)]
async fn pay(scene: Scene<Rig>) -> Said {
    scene.body().await
}

// X01
#[test]
fn a_call_whose_body_is_a_task_of_its_own() {
    sweep(
        5,
        async || Scene::new(Policy::new(), Ends::Well).await,
        async |scene| pay(scene).await,
        async |scene, said, _| {
            assert!(said.is_none_or(|said| said == Ok(1)));
            let reached = scene.reached();
            assert!(matches!(reached, Reached::Nothing | Reached::End));
            assert_eq!(pay(scene.clone()).await, Ok(1));
            assert_eq!(scene.bodies.count(), 1);
            assert_eq!(scene.effects.count(), 1);
        },
    );
}
