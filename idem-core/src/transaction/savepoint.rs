//! Savepoints whose opening does not end the transaction around them.
//!
//! Where sqlx is dropped while it opens a savepoint, or can not open it, it rolls back one level too
//! far, on PostgreSQL two: the transaction of a caller who goes on, with statements that then commit
//! one by one, or the savepoint of a body around this one, which would then be kept by a COMMIT.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sqlx::Transaction;

use super::Database;
use crate::store::sql::within::{Call, depth};

/// Opens a savepoint. If it can not, [`restore`] has to follow.
pub(super) async fn open<D: Database>(
    connection: &mut D::Connection,
) -> sqlx::Result<Transaction<'_, D>> {
    Whole::new(Transaction::begin(connection, None), D::leave_opening).await
}

/// Keeps what was done in the savepoint.
pub(crate) async fn keep<D: Database>(savepoint: Transaction<'_, D>) -> sqlx::Result<()> {
    Whole::new(Box::pin(savepoint.commit()), D::leave_keeping).await
}

/// After a refusal: where sqlx has ended what was open before the call, as much is open again, but
/// nothing can be written or kept in it.
pub(crate) async fn restore<D: Database>(connection: &mut D::Connection, before: usize) {
    if depth::<D>(connection) < before {
        D::reopen(connection, before).await;
    }
}

/// A call that is not just dropped.
struct Whole<'a, T> {
    call: Option<Call<'a, T>>,
    leave: fn(Call<'a, T>),
}

impl<'a, T> Whole<'a, T> {
    fn new(call: Call<'a, T>, leave: fn(Call<'a, T>)) -> Self {
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
