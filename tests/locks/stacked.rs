//! `#[locked]` and `#[idempotent]` on one function, with one prefix and one key.

use idem_core::{Attempt, Error, Lock, Outcome, idempotent, locked, observe};

use crate::rig::{Bodies, Held, Rig, key};
use crate::scene::{is_held, lock};

/// The attribute that is nearer to the `fn` is asked first.
#[locked(prefix = "test", key = name, engine = rig.idem)]
#[idempotent(prefix = "test", key = name, engine = rig.idem)]
async fn locked_inside(rig: &Rig, name: &str, bodies: &Bodies) -> Result<u32, Error> {
    check();
    Ok(bodies.add())
}

#[idempotent(prefix = "test", key = name, engine = rig.idem)]
#[locked(prefix = "test", key = name, engine = rig.idem)]
async fn locked_outside(rig: &Rig, name: &str, bodies: &Bodies) -> Result<u32, Error> {
    check();
    Ok(bodies.add())
}

/// Each of the two is there, and is itself.
fn check() {
    let (attempt, lock) = (Attempt::current().unwrap(), Lock::current().unwrap());
    assert_eq!(attempt.key(), lock.key());
    assert_eq!(attempt.number(), 1);
    assert!(!attempt.is_takeover() && !lock.is_takeover());
}

// N31
#[tokio::test]
async fn both_orders_run_once_and_replay() {
    for is_inside in [true, false] {
        let (rig, bodies) = (Rig::new(), Bodies::default());
        for expected in [Outcome::Executed, Outcome::Replayed] {
            let (result, outcome) = if is_inside {
                observe(locked_inside(&rig, "A", &bodies)).await
            } else {
                observe(locked_outside(&rig, "A", &bodies)).await
            };
            assert_eq!(result.unwrap(), 1);
            assert_eq!(outcome, expected, "inside: {is_inside}");
        }
        assert_eq!(bodies.count(), 1);
        let records = rig.idem.records("").await.unwrap();
        assert_eq!(records.len(), 1, "the lock has gone, the result stays");
    }
}

/// Which of the two is asked first is what the order says.
#[tokio::test]
async fn a_replay_needs_the_lock_only_where_the_lock_is_outside() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    locked_inside(&rig, "A", &bodies).await.unwrap();
    let held = lock(&rig).acquire().await.unwrap();
    assert_eq!(locked_inside(&rig, "A", &bodies).await.unwrap(), 1);
    held.release().await.unwrap();

    let (rig, bodies) = (Rig::new(), Bodies::default());
    locked_outside(&rig, "A", &bodies).await.unwrap();
    let _held = rig.idem.lock(key()).acquire().await.unwrap();
    let refused = locked_outside(&rig, "A", &bodies).await;
    assert!(is_held(&refused), "{refused:?}");
}

#[locked(prefix = "stock", key = "item", engine = rig.idem)]
#[idempotent(prefix = "test", key = name, on_error = "release", engine = rig.idem)]
async fn pay(rig: &Rig, name: &str, item: u32, held: &Held) -> Result<u32, Error> {
    held.stay().await;
    Ok(item)
}

/// Two requests on one thing: each once, one after the other.
#[tokio::test]
async fn a_request_that_finds_the_lock_held_is_not_done_and_can_come_again() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = tokio::spawn({
        let (rig, held) = (rig.clone(), held.clone());
        async move { pay(&rig, "A", 7, &held).await }
    });
    held.entered().await;
    let refused = pay(&rig, "B", 7, &held).await;
    assert!(is_held(&refused), "{refused:?}");
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 7);
    held.release();
    assert_eq!(pay(&rig, "B", 7, &held).await.unwrap(), 7);
}
