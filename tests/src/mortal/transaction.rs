//! The guarded function in transaction mode.

use std::process;

use anyhow::Result;
use idem_core::{Idempotency, idempotent};
use sqlx::{Pool, Transaction};

use super::base::Base;
use super::{Point, trap};

/// The prefix of [`pay`].
pub const PREFIX: &str = "mortal:pay";

/// An effect, and which process had it.
#[idempotent(prefix = "mortal:pay", key = number, tx = tx, engine = idem, wait = "30s")]
pub async fn pay<D: Base>(
    idem: &Idempotency,
    tx: &mut Transaction<'_, D>,
    number: i64,
) -> Result<u32> {
    trap::all_sent(Point::ClaimSent);
    trap::at(Point::Claimed);
    D::add(tx, number).await?;
    trap::at(Point::Effect);
    trap::count_sends(Point::RecordSent);
    Ok(process::id())
}

/// What the caller of [`pay`] does around it.
pub async fn once<D: Base>(idem: &Idempotency, pool: &Pool<D>, number: i64) -> Result<u32> {
    let mut tx = D::begin(pool).await?;
    trap::at(Point::Begun);
    trap::count_sends(Point::ClaimSent);
    let who = pay(idem, &mut tx, number).await?;
    trap::all_sent(Point::RecordSent);
    trap::at(Point::Written);
    commit(tx).await?;
    Ok(who)
}

/// COMMIT, and what can happen meanwhile.
pub(super) async fn commit<D: Base>(tx: Transaction<'_, D>) -> Result<()> {
    trap::count_sends(Point::CommitSent);
    trap::hear_nothing(Point::CommitDone);
    tx.commit().await?;
    // Of a file nobody but the process itself knows that it answered.
    trap::answered();
    trap::all_sent(Point::CommitSent);
    Ok(())
}
