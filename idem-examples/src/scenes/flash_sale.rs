//! Flash sale: the stock is counted down by a conditional update, so nobody waits for a lock while
//! others think; a record for each *request* answers the impatient, and keeps a retry from buying
//! a second one. [`buy_in_turn`] does the same by a lock, to show what that costs.

use axum::http::StatusCode;
use idem_core::sql::{InsertError, Insertion};
use idem_core::{Lock, OnError, idempotent, locked};
use serde::{Deserialize, Serialize};
use sqlx::Transaction;

use crate::answer::Refusal;
use crate::database::Dialect;
use crate::shop::Shop;
use crate::stock::{self, Ticket};

/// One buyer's one click.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuyRequest {
    /// The client's own id of this request, such as a UUID. A key by sale alone would let one buy.
    pub request_id: String,
    /// Which sale.
    pub sale_no: String,
    /// Who buys.
    pub buyer: String,
}

/// Why nothing was bought.
#[derive(Debug, thiserror::Error)]
pub enum SaleError {
    /// There is no such sale, or nothing left of it.
    #[error("sold out")]
    SoldOut,
    /// The request id belongs to another purchase.
    #[error("this request id was used for another purchase")]
    AnotherPurchase,
    /// The lock was lost meanwhile, and its next holder has been here; or there is none.
    #[error("somebody else was quicker")]
    Overtaken,
    /// The purchase could not be noted.
    #[error("the purchase can not be noted: {0}")]
    Note(#[from] InsertError),
    /// The database failed.
    #[error("the stock can not be read or written: {0}")]
    Database(#[from] sqlx::Error),
    /// The guard refused.
    #[error(transparent)]
    Guard(#[from] idem_core::Error),
}

/// Buys one, if one is left.
///
/// # Errors
/// See [`SaleError`].
///
/// # Concurrent calls on the same key
/// One runs, the others wait for its ticket. Running again after a crash is harmless: the purchase
/// is noted, under the request's id, in the transaction that counts the stock down. It is noted
/// first: a transaction of the attempt before that is still being committed is waited for, and what
/// it has bought is found, though nothing may be left.
#[idempotent(
    prefix = "order:buy",
    // Nobody logs in to buy here. Where somebody does, an id that a client makes is that user's
    // alone: `key = (user.name, request.request_id)`, and the same in the unique constraint.
    key = "request.request_id",
    fingerprint = "request",
    expire = "1h",
    lease = 5,
    in_progress = "wait",
    on_abandoned = "rerun",
    on_error = meaning,
    detach = true
)]
pub async fn buy<DB: Dialect>(shop: Shop<DB>, request: BuyRequest) -> Result<Ticket, SaleError> {
    let mut tx = DB::begin(&shop.pool).await?;
    let ticket = match note(&mut tx, &request).await? {
        Insertion::Inserted(ticket) => ticket,
        Insertion::Existing(ticket) => return Ok(ticket),
    };
    if !stock::take(&mut tx, &request.sale_no).await? {
        return Err(SaleError::SoldOut);
    }
    tx.commit().await?;
    Ok(ticket)
}

/// Buys one as [`buy`] does, but in turn: for comparison, and slower. Each buyer waits for the whole
/// body of all before, and for two round trips to the store on top, also when nothing is left. And
/// a lock is advice: a holder that stood still for longer than its lease goes on beside the next
/// one, so that the stock has to look at the fence in any case, and locks its row for that.
///
/// # Errors
/// See [`SaleError`].
///
/// # Concurrent calls on the same key
/// As for [`buy`]; other requests for the same sale wait for the lock, up to 20 s.
#[locked(
    prefix = "sale",
    key = "request.sale_no",
    lease = 5,
    wait = "20s",
    message = "Too many want this; try again."
)]
#[idempotent(
    prefix = "order:buy-in-turn",
    key = "request.request_id",
    fingerprint = "request",
    expire = "1h",
    lease = 5,
    in_progress = "wait",
    on_abandoned = "rerun",
    on_error = meaning,
    detach = true
)]
pub async fn buy_in_turn<DB: Dialect>(
    shop: Shop<DB>,
    request: BuyRequest,
) -> Result<Ticket, SaleError> {
    let mut tx = DB::begin(&shop.pool).await?;
    let ticket = match note(&mut tx, &request).await? {
        Insertion::Inserted(ticket) => ticket,
        Insertion::Existing(ticket) => return Ok(ticket),
    };
    // Not 0 where there is none: that would be the fence of everybody.
    let lock = Lock::current().ok_or(SaleError::Overtaken)?;
    let fence = lock.fence().as_i64();
    let left = stock::left(&mut tx, &request.sale_no, fence).await?;
    let left = left.ok_or(SaleError::Overtaken)?;
    if left < 1 {
        return Err(SaleError::SoldOut);
    }
    stock::set_left(&mut tx, &request.sale_no, left - 1).await?;
    // Before the lock is released: the next one reads what is left.
    tx.commit().await?;
    Ok(ticket)
}

/// The ticket of this request, new or not. The record may have expired, or be of the other way to
/// buy; the row is there, and says for which sale.
async fn note<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    request: &BuyRequest,
) -> Result<Insertion<Ticket>, SaleError> {
    let ticket = Ticket {
        sale_no: request.sale_no.clone(),
        buyer: request.buyer.clone(),
    };
    match stock::note(tx, &request.request_id, &ticket).await? {
        Insertion::Existing(before) if before != ticket => Err(SaleError::AnotherPurchase),
        noted => Ok(noted),
    }
}

/// A retry may run after each: what was not committed did not happen, and what was is found.
fn meaning(error: &SaleError) -> OnError {
    match error {
        SaleError::SoldOut | SaleError::AnotherPurchase => OnError::Fail,
        SaleError::Overtaken
        | SaleError::Note(_)
        | SaleError::Database(_)
        | SaleError::Guard(_) => OnError::Release,
    }
}

impl From<SaleError> for Refusal {
    fn from(error: SaleError) -> Self {
        match &error {
            SaleError::SoldOut => Self::new(StatusCode::CONFLICT, "sold_out", error.to_string()),
            SaleError::AnotherPurchase => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "another_purchase",
                error.to_string(),
            ),
            SaleError::Overtaken => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "overtaken",
                error.to_string(),
            ),
            SaleError::Note(error) => Self::internal(error),
            SaleError::Database(error) => Self::internal(error),
            SaleError::Guard(error) => error.clone().into(),
        }
    }
}
