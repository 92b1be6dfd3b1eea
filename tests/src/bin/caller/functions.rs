//! The guarded functions, one for each level.

use std::future::{Ready, ready};

use idem_core::{Attempt, Error, Idempotency, Recovered, idempotent};
use idem_tests::history::{Finding, What};
use sqlx::{Postgres, Transaction};

use crate::body::{Body, Call, Failed, meaning};

#[idempotent(prefix = "history", key = call.key, engine = idem, on_error = meaning)]
pub(crate) async fn hold(idem: &Idempotency, call: &Call) -> Result<u64, Failed> {
    plain(call).await
}

#[idempotent(
    prefix = "history", key = call.key, engine = idem, on_error = meaning, on_abandoned = "rerun"
)]
pub(crate) async fn rerun(idem: &Idempotency, call: &Call) -> Result<u64, Failed> {
    plain(call).await
}

#[idempotent(
    prefix = "history", key = call.key, engine = idem, on_error = meaning, checkpoint = true,
    recover = look_up(call)
)]
pub(crate) async fn recover(idem: &Idempotency, call: &Call) -> Result<u64, Failed> {
    let (attempt, fence) = attempt()?;
    let body = Body::begin(call, fence);
    call.prepare().await;
    if body.declines() {
        return body.end_without_effect(Failed::Declined);
    }
    if let Err(error) = attempt.checkpoint().await {
        return body.end_without_effect(error.into());
    }
    call.note(What::Passed);
    call.approach().await;
    if !call.happens(fence).await {
        return body.end_without_effect(Failed::Declined);
    }
    call.clear_up().await;
    body.end()
}

/// The table `effect` is the ledger.
#[idempotent(prefix = "history", key = call.key, engine = idem, tx = tx, on_error = meaning)]
pub(crate) async fn transfer(
    idem: &Idempotency,
    tx: &mut Transaction<'_, Postgres>,
    call: &Call,
) -> Result<u64, Failed> {
    let body = Body::begin(call, 0);
    call.prepare().await;
    if body.declines() {
        return body.end_without_effect(Failed::Declined);
    }
    if let Err(error) = call.add_effect(&mut **tx).await {
        return body.end_without_effect(error.into());
    }
    call.clear_up().await;
    body.end()
}

async fn plain(call: &Call) -> Result<u64, Failed> {
    let (_, fence) = attempt()?;
    let body = Body::begin(call, fence);
    call.prepare().await;
    if body.declines() {
        return body.end_without_effect(Failed::Declined);
    }
    call.note(What::Happened);
    call.clear_up().await;
    body.end()
}

fn look_up(call: &Call) -> Ready<Result<Recovered<u64>, Failed>> {
    ready(
        attempt()
            .map_err(Failed::from)
            .map(|(_, fence)| match call.look_up(fence) {
                Some(Finding::Done(value)) => Recovered::Done(value),
                Some(Finding::NotDone) => Recovered::NotDone,
                None => Recovered::Unknown,
            }),
    )
}

fn attempt() -> Result<(Attempt, u64), Error> {
    let attempt = Attempt::current().ok_or(Error::NotInstalled)?;
    let fence = attempt.fence().as_u64();
    Ok((attempt, fence))
}
