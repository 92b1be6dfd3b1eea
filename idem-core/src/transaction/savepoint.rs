//! Savepoints whose opening does not end the transaction around them.
//!
//! Where sqlx is dropped while it opens a savepoint, or can not open it, it rolls back one level too
//! far, on PostgreSQL two: the transaction of a caller who goes on, with statements that then commit
//! one by one, or the savepoint of a body around this one, which would then be kept by a COMMIT.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

use sqlx::Transaction;
use sqlx_core::transaction::TransactionManager;

use super::Database;
use crate::store::sql::within::{Call, depth};

/// Opens a savepoint. If it can not, [`restore`] has to follow. Where sqlx has ended the transaction
/// already, this would be one of its own, and none of the caller's.
pub(crate) async fn open<D: Database>(
    connection: &mut D::Connection,
) -> sqlx::Result<Transaction<'_, D>> {
    if depth::<D>(connection) == 0 {
        return Err(sqlx::Error::Protocol(
            "the caller's transaction has ended; begin a new one".to_owned(),
        ));
    }
    Whole::new(Transaction::begin(connection, None), D::leave_opening).await
}

/// How many transactions and savepoints are open.
pub(crate) async fn level<D: Database>(connection: &mut D::Connection) -> usize {
    D::level(connection).await
}

/// Takes back what was done since `savepoint` was opened as the level `depth`, where sqlx believes
/// to be in another one by now. To drop it would roll back whatever that is. If it is below the
/// caller's, [`restore`] has to follow.
pub(super) async fn take_back<D: Database>(
    savepoint: Transaction<'_, D>,
    depth: usize,
    level: usize,
) {
    let mut savepoint = ManuallyDrop::new(savepoint);
    for _ in depth..=level {
        D::TransactionManager::start_rollback(&mut savepoint);
    }
    // Gone back to once by sqlx, and open still.
    if level + 1 == depth {
        let back = Box::pin(D::back_to(&mut savepoint, depth));
        Whole::new(back, D::leave_opening).await;
    }
}

/// After an error: where sqlx has ended what was open before the call, as much is open again, but
/// nothing can be written or kept in it.
pub(crate) async fn restore<D: Database>(connection: &mut D::Connection, before: usize) {
    if level::<D>(connection).await < before {
        D::reopen(connection, before).await;
    }
}

/// A call that is not just dropped.
pub(crate) struct Whole<'a, T> {
    call: Option<Call<'a, T>>,
    leave: fn(Call<'a, T>),
}

impl<'a, T> Whole<'a, T> {
    pub(crate) fn new(call: Call<'a, T>, leave: fn(Call<'a, T>)) -> Self {
        let call = Some(call);
        Self { call, leave }
    }
}

impl<T> Future for Whole<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(call) = &mut self.call else {
            return Poll::Pending;
        };
        let polled = call.as_mut().poll(context);
        if polled.is_ready() {
            self.call = None;
        }
        polled
    }
}

impl<T> Drop for Whole<'_, T> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            (self.leave)(call);
        }
    }
}
