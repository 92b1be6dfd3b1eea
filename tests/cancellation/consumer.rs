//! A message whose handling is dropped is delivered again; it has no second effect.

use idem_core::Error;
use idem_core::consumer::{Action, Consumer, Meaning, MessageId};
use idem_core::{Key, Policy};
use idem_tests::rig::Rig;

use crate::scene::{Reached, Scene};
use crate::sweep::sweep;

async fn handle(scene: &Scene<Rig>) -> Action {
    let consumer = Consumer::new(|refusal: &Error| Meaning::Refusal(refusal));
    let number = scene.number.to_string();
    let call = async |id: MessageId| {
        let key = Key::new("swept", id)?;
        let body = async || Ok::<_, Error>(scene.body().await.unwrap_or_default());
        scene.ground().idem.run(key, Policy::new(), body).await
    };
    consumer.handle(Some(&number), 0, call).await
}

// C09
#[test]
fn a_message() {
    sweep(
        7,
        async || Scene::at_hold().await,
        async |scene| handle(&scene).await,
        async |scene, action, _| {
            assert!(action.is_none_or(|action| action == Action::Ack));
            let reached = scene.reached();
            let again = handle(scene).await;
            let is_as_promised = match reached {
                Reached::Nothing | Reached::End => again == Action::Ack,
                _ => again == Action::Park,
            };
            assert!(is_as_promised, "{reached:?}: {again:?}");
            scene.has_no_second_effect();
        },
    );
}
