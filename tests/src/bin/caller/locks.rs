//! Holders of a lock, who write under it to what looks at fences.

use idem_core::{Error, Idempotency, Key, Lock, locked};
use idem_tests::history::{LEASE, What, now};

use crate::body::{Body, Call, Failed};
use crate::service::WAIT;

/// Half of those who wait hold it by the attribute.
pub(crate) async fn write(idem: &Idempotency, call: &Call) -> Result<u64, Failed> {
    if call.plan.waits && call.number.is_multiple_of(2) {
        return under_the_attribute(idem, call).await;
    }
    let request = idem.lock(Key::new("history", call.key)?);
    let request = if call.plan.waits {
        request.wait(WAIT)
    } else {
        request
    };
    let lock = request.lease(LEASE).acquire().await?;
    let value = hold(&lock, call).await?;
    lock.release().await?;
    Ok(value)
}

#[locked(prefix = "history", key = call.key, lease = LEASE, wait = WAIT, engine = idem)]
async fn under_the_attribute(idem: &Idempotency, call: &Call) -> Result<u64, Failed> {
    let lock = Lock::current().ok_or(Error::NotInstalled)?;
    hold(&lock, call).await
}

/// It does not stop when the lock is lost: that is up to the fence.
async fn hold(lock: &Lock, call: &Call) -> Result<u64, Failed> {
    let fence = lock.fence().as_u64();
    let body = Body::begin(call, fence);
    call.prepare().await;
    if body.declines() {
        return body.end_without_effect(Failed::Declined);
    }
    say_if_held(lock, call);
    if !call.writes(fence).await {
        return body.end_without_effect(Failed::Declined);
    }
    call.clear_up().await;
    say_if_held(lock, call);
    body.end()
}

fn say_if_held(lock: &Lock, call: &Call) {
    let asked = now();
    if !lock.is_lost() {
        call.note(What::Held { asked });
    }
}
