//! The guarded functions of the suite.

use anyhow::{Result, bail};
use idem_core::{Error, idempotent};
use idem_tests::body::Held;
use serde::{Deserialize, Serialize};
use sqlx::Transaction;

use crate::base::{Base, Place};

/// What a body does after its effect.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    End,
    Fail,
    Panic,
    Stay(Held),
}

async fn effect<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
    then: Then,
) -> Result<String> {
    let run = place.bodies.add();
    D::add(tx, number).await?;
    match then {
        Then::End => {}
        Then::Fail => bail!("declined"),
        Then::Panic => panic!("a body that panics"),
        Then::Stay(held) => held.stay().await,
    }
    Ok(format!("run {run}"))
}

#[idempotent(prefix = "pay", key = number, tx = tx, engine = place.idem)]
pub(crate) async fn pay<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
    then: Then,
) -> Result<String> {
    effect(place, tx, number, then).await
}

#[idempotent(prefix = "pay_or_wait", key = number, tx = tx, engine = place.idem, wait = "20s")]
pub(crate) async fn pay_or_wait<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
    then: Then,
) -> Result<String> {
    effect(place, tx, number, then).await
}

#[idempotent(prefix = "pay_or_wait_briefly", key = number, tx = tx, engine = place.idem, wait = "2s")]
pub(crate) async fn pay_or_wait_briefly<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
    then: Then,
) -> Result<String> {
    effect(place, tx, number, then).await
}

#[idempotent(prefix = "pay_once", key = number, tx = tx, engine = place.idem, on_duplicate = "reject")]
pub(crate) async fn pay_once<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
    then: Then,
) -> Result<String> {
    effect(place, tx, number, then).await
}

/// An error that is final.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Final {
    Declined(u32),
    Other(String),
}

impl From<Error> for Final {
    fn from(error: Error) -> Self {
        Self::Other(error.code().to_owned())
    }
}

#[idempotent(prefix = "decline", key = number, tx = tx, engine = place.idem, on_error = "replay")]
pub(crate) async fn decline<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
) -> Result<(), Final> {
    D::add(tx, number)
        .await
        .map_err(|error| Final::Other(error.to_string()))?;
    Err(Final::Declined(place.bodies.add()))
}

/// Declines in the name of another that declines.
#[idempotent(prefix = "decline_both", key = number, tx = tx, engine = place.idem, on_error = "replay")]
pub(crate) async fn decline_both<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: i64,
) -> Result<(), Final> {
    decline(place, tx, number).await
}

/// What kept a body from running.
pub(crate) fn refusal(result: Result<String>) -> Error {
    let error = result.expect_err("this call was to be refused");
    error.downcast().expect("an error of the guard")
}
