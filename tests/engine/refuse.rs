//! A Cancel that comes before its Try.

use std::time::Duration;

use idem_core::record::Status;
use idem_core::{Error, Idempotency, Key, Policy};

use crate::rig::Rig;

fn key() -> Key {
    Key::new("order:pay", "A-1").unwrap()
}

async fn pay(idem: &Idempotency) -> Result<u32, Error> {
    idem.run(key(), Policy::new(), async || Ok(7)).await
}

#[tokio::test]
async fn a_request_that_was_refused_beforehand_does_not_run() {
    let idem = Idempotency::memory();
    idem.refuse(&key()).await.unwrap();
    idem.refuse(&key()).await.unwrap();
    assert!(matches!(pay(&idem).await, Err(Error::Refused { .. })));
    let view = idem.peek(&key()).await.unwrap().unwrap();
    assert_eq!((view.status, view.attempt), (Status::Refused, 0));
}

#[tokio::test]
async fn a_request_that_came_first_can_not_be_refused() {
    let idem = Idempotency::memory();
    pay(&idem).await.unwrap();
    assert!(matches!(
        idem.refuse(&key()).await,
        Err(Error::Duplicate { .. })
    ));
    assert_eq!(pay(&idem).await.unwrap(), 7);
}

#[tokio::test]
async fn a_running_request_can_not_be_refused() {
    let idem = Idempotency::memory();
    let refused = idem
        .run(key(), Policy::new(), async || {
            let refused = idem.refuse(&key()).await;
            Ok::<_, Error>(matches!(refused, Err(Error::InProgress { .. })))
        })
        .await;
    assert!(refused.unwrap());
}

#[tokio::test]
async fn a_request_is_refused_for_as_long_as_it_may_come() {
    const LATE: Duration = Duration::from_hours(24 * 14);
    let rig = Rig::new();
    rig.idem.refuse(&key()).expire(LATE).await.unwrap();
    rig.clock
        .advance(LATE.saturating_sub(Duration::from_secs(1)));
    assert!(matches!(pay(&rig.idem).await, Err(Error::Refused { .. })));
    rig.clock.advance(Duration::from_secs(2));
    assert_eq!(pay(&rig.idem).await.unwrap(), 7);
    let for_no_time = rig.idem.refuse(&key()).expire(Duration::ZERO).await;
    assert!(matches!(for_no_time, Err(Error::InvalidPolicy { .. })));
}
