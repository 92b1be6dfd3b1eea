//! Calls that are dropped at the moments that matter. After every poll: `tests/cancellation`.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};

use idem_core::record::{Outcome, RenewReply, Reply, Status};
use idem_core::{Attempt, Error, Policy};
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{Bodies, Held, LIMIT, Rig, dropped_after};

#[tokio::test]
async fn a_call_dropped_before_it_hears_of_its_grant_is_given_up() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Claim, [Fault::swallow_the_reply()]);
    let mut call: Pin<Box<dyn Future<Output = _> + '_>> =
        Box::pin(rig.count(Policy::new(), &bodies));
    assert!(futures_poll(&mut call).await.is_none());
    assert!(rig.is_live().await, "it was not granted");
    drop(call);
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    assert!(rig.outcomes().contains(&Outcome::GiveUp));
    assert_eq!(rig.status().await, None);
    assert_eq!(bodies.count(), 0);
}

async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    dropped_after(1, future).await
}

// N30
#[tokio::test]
async fn a_checkpoint_still_on_the_wire_when_its_attempt_was_dropped_is_refused() {
    let rig = Rig::new();
    rig.store
        .always(Verb::Renew, Fault::hang().leaving_a_copy());
    let call = {
        let rig = rig.clone();
        tokio::spawn(async move {
            let body = async || {
                Attempt::current().unwrap().checkpoint().await?;
                Ok(1)
            };
            rig.run(Policy::new().own_checkpoint(), body).await
        })
    };
    rig.store.until_calls(Verb::Renew, 1).await;
    call.abort();
    assert!(call.await.is_err());
    rig.until_idle().await;

    for reply in rig.store.deliver_copies().await {
        assert_eq!(reply, Reply::Renew(RenewReply::Lost));
    }
    let bodies = Bodies::default();
    let policy = Policy::new().own_checkpoint();
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
}

#[tokio::test]
async fn a_call_dropped_while_settling_is_settled_all_the_same() {
    let rig = Rig::new();
    rig.store.next(Verb::Settle, [Fault::hang(); 2]);
    let call = {
        let rig = rig.clone();
        tokio::spawn(async move { rig.run(Policy::new(), async || Ok(1)).await })
    };
    rig.store.until_calls(Verb::Settle, 1).await;
    call.abort();
    assert!(call.await.is_err());
    rig.until_idle().await;
    assert_eq!(rig.status().await, Some(Status::Success));
    let bodies = Bodies::default();
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 0);
}

/// What a body's own values do when they are dropped belongs to the attempt, too.
#[tokio::test]
async fn a_dropped_bodys_values_still_see_their_attempt_and_go_before_the_abandon() {
    struct Last(Arc<Mutex<Option<u64>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = Attempt::current().map(|attempt| attempt.fence().as_u64());
        }
    }
    let (rig, seen) = (Rig::new(), Arc::new(Mutex::new(None)));
    let mut call = Box::pin(rig.run(Policy::new(), async || {
        let _last = Last(seen.clone());
        std::future::pending().await
    }));
    assert!(futures_poll(&mut call).await.is_none());
    let fence = rig.record().await.unwrap().fence;
    drop(call);
    assert_eq!(*seen.lock().unwrap(), Some(fence.as_u64()));
    rig.until_idle().await;
    assert!(rig.is_abandoned().await);
}

// X01
#[tokio::test]
async fn a_thousand_dropped_calls_leave_nothing_behind() {
    let rig = Rig::new();
    let held = Held::new();
    for number in 0..1000 {
        let key = idem_core::Key::new("many", number).unwrap();
        let body = async || {
            held.stay().await;
            Ok::<u32, Error>(1)
        };
        let mut call = pin!(rig.idem.run(key, Policy::new(), body));
        assert!(dropped_after(1, call.as_mut()).await.is_none());
    }
    rig.until_idle().await;
    let records = rig.idem.records("many").await.unwrap();
    assert_eq!(records.len(), 1000);
    for record in records {
        assert!(record.running.is_some_and(|running| running.is_abandoned));
    }
}
