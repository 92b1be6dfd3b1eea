//! Payment callback: the provider tells what happened to a charge, again and again until we say
//! `success`. Its signature is checked before anything else, so that nobody can poison a record;
//! then the notification, the order's state and the record of having done it are one transaction.

use axum::http::StatusCode;
use idem_core::idempotent;
use idem_core::sql::InsertError;
use idem_core::states::Answer;
use sqlx::Transaction;

use crate::answer::Refusal;
use crate::database::Dialect;
use crate::orders::{self, ChangeError, Status};
use crate::payments::{self, Kind, Notification};
use crate::seal::Seal;
use crate::shop::Shop;

/// Why we do not say `success`; the provider will come again.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// Not signed by the provider.
    #[error("the signature is wrong")]
    Forged,
    /// Signed, but not as agreed.
    #[error("the notification can not be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// There is no such order.
    #[error("there is no such order")]
    NoSuchOrder,
    /// The order costs something else.
    #[error("the order costs something else")]
    WrongAmount,
    /// A refund that overtook its payment, say.
    #[error("this can not happen to an order that is {0:?}")]
    NotNow(Status),
    /// Another charge has paid the order: somebody has to give one of them back. Once the provider
    /// has told of that, this payment is taken, too.
    #[error("another charge has paid the order")]
    AnotherCharge,
    /// The order's state could not be changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Our books say something else of this charge.
    #[error("this event is in the books, of another order or amount")]
    AnotherEvent,
    /// The line could not be written.
    #[error("the payment can not be noted: {0}")]
    Note(#[from] InsertError),
    /// The database failed.
    #[error("the payments can not be read or written: {0}")]
    Database(#[from] sqlx::Error),
    /// The guard refused.
    #[error(transparent)]
    Guard(#[from] idem_core::Error),
}

/// Takes what the provider sent: the signature, then everything else.
///
/// # Errors
/// See [`CallbackError`]. Nothing was written then.
///
/// # Cancel safety
/// Dropped, the transaction is rolled back, unless its commit was under way. But run it [`apart`]: a
/// drop in the middle of a statement can cost the connection.
///
/// [`apart`]: crate::apart
pub async fn receive<DB: Dialect>(
    shop: &Shop<DB>,
    provider: &Seal,
    signature: &str,
    body: &[u8],
) -> Result<(), CallbackError> {
    if !provider.is_signed(body, signature) {
        return Err(CallbackError::Forged);
    }
    let note: Notification = serde_json::from_slice(body)?;
    let mut tx = DB::begin(&shop.pool).await?;
    apply(&mut tx, &note).await?;
    tx.commit().await?;
    Ok(())
}

/// Does what the notification says, once. The key holds its kind: by the charge alone, a refund
/// would be taken for the payment told again. That is enough only because this provider gives a
/// charge back whole: where a charge can be given back in parts, each part is an event of its own,
/// and the second would be taken for the first, or refused for its other amount. Where a
/// notification has an id of the event, let that be the key, and the unique constraint of the books.
///
/// # Errors
/// See [`CallbackError`].
///
/// # Concurrent calls on the same key
/// The first has the key until its transaction ends; the others wait for that.
#[idempotent(
    prefix = "order:notify",
    key = (note.charge_no, note.kind),
    fingerprint = "note",
    expire = "30d",
    in_progress = "wait",
    tx = tx
)]
pub async fn apply<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    note: &Notification,
) -> Result<(), CallbackError> {
    let order = orders::find_in(tx, &note.order_no).await?;
    let order = order.ok_or(CallbackError::NoSuchOrder)?;
    if order.amount_cents != note.amount_cents {
        return Err(CallbackError::WrongAmount);
    }
    let (order_no, charge_no) = (&note.order_no, note.charge_no);
    let answer = match note.kind {
        Kind::Paid => Some(orders::pay(tx, order_no, charge_no, None).await?),
        Kind::Refunded => match order.charge_no {
            Some(paid_by) if paid_by == charge_no => {
                let cause = format!("refund of charge {charge_no}");
                Some(orders::change(tx, order_no, Status::Refunded, &cause, None).await?)
            }
            // Of a charge too many: the order keeps the one that paid it.
            Some(_) => None,
            None => return Err(CallbackError::NotNow(order.status)),
        },
    };
    match answer {
        None | Some(Answer::Applied { .. } | Answer::AlreadyThere { .. }) => {}
        Some(Answer::NotFound) => return Err(CallbackError::NoSuchOrder),
        // A charge too many that was given back, of an order that is paid by another one, or has gone
        // on since: with this line the books are even. The order's own is already there.
        Some(Answer::Illegal { .. } | Answer::Conflict { .. })
            if note.kind == Kind::Paid && payments::was_refunded(tx, note).await? => {}
        Some(Answer::Illegal { current, .. }) => return Err(CallbackError::NotNow(current)),
        Some(Answer::Conflict { .. }) => return Err(CallbackError::AnotherCharge),
    }
    // The record may have expired; the line has not.
    let line = payments::note(tx, note).await?;
    if (&line.order_no, line.amount_cents) != (order_no, note.amount_cents) {
        return Err(CallbackError::AnotherEvent);
    }
    Ok(())
}

impl From<CallbackError> for Refusal {
    fn from(error: CallbackError) -> Self {
        let (status, code) = match &error {
            CallbackError::Forged => (StatusCode::UNAUTHORIZED, "forged"),
            CallbackError::Unreadable(_) => (StatusCode::BAD_REQUEST, "unreadable"),
            CallbackError::NoSuchOrder => (StatusCode::NOT_FOUND, "no_such_order"),
            CallbackError::WrongAmount => (StatusCode::UNPROCESSABLE_ENTITY, "wrong_amount"),
            CallbackError::NotNow(_) => (StatusCode::CONFLICT, "not_now"),
            CallbackError::AnotherCharge => (StatusCode::CONFLICT, "another_charge"),
            CallbackError::AnotherEvent => (StatusCode::UNPROCESSABLE_ENTITY, "another_event"),
            CallbackError::Change(error) => return Self::internal(error),
            CallbackError::Note(error) => return Self::internal(error),
            CallbackError::Database(error) => return Self::internal(error),
            CallbackError::Guard(error) => return error.clone().into(),
        };
        tracing::warn!(%error, "a notification was not accepted");
        Self::new(status, code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Sqlite;

    use super::*;
    use crate::database;
    use crate::orders::Draft;

    #[tokio::test]
    async fn a_charge_that_is_in_the_books_pays_no_other_order() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let pool = database::sqlite(&folder.path().join("orders.sqlite")).await?;
        let ledger = database::ledger(&folder.path().join("ledger.sqlite")).await?;
        let idem = Sqlite::records(&pool).await?;
        let shop = Shop::new(pool, ledger);
        let seal = Seal::new(b"secret")?;
        let told_of = async |request_id: &str| -> anyhow::Result<Result<(), CallbackError>> {
            let draft = Draft {
                request_id: request_id.into(),
                item: "tea".into(),
                quantity: 1,
                amount_cents: 420,
            };
            let note = Notification {
                charge_no: 7,
                kind: Kind::Paid,
                order_no: orders::insert_or_get(&shop.pool, &draft).await?.order_no,
                amount_cents: 420,
            };
            let body = serde_json::to_vec(&note)?;
            let signature = seal.sign(&body);
            Ok(idem.scope(receive(&shop, &seal, &signature, &body)).await)
        };
        told_of("r-1").await??;
        // As when it has expired.
        sqlx::raw_sql("DELETE FROM idempotent_record")
            .execute(&shop.pool)
            .await?;
        let other = told_of("r-2").await?;
        assert!(
            matches!(other, Err(CallbackError::AnotherEvent)),
            "{other:?}"
        );
        let newest = orders::newest(&shop.pool, 1).await?;
        assert_eq!(newest[0].status, Status::Unpaid);
        Ok(())
    }
}
