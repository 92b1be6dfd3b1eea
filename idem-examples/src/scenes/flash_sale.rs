//! Flash sale: the stock is counted down by a conditional update, so nobody waits for a lock while
//! others think; a record for each *request* answers the impatient, and keeps a retry from buying
//! a second one.

use axum::http::StatusCode;
use idem_core::{OnError, idempotent};
use serde::{Deserialize, Serialize};

use crate::answer::Refusal;
use crate::database::Dialect;
use crate::shop::Shop;
use crate::stock;

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

/// The proof of a purchase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Which sale.
    pub sale_no: String,
    /// Who bought.
    pub buyer: String,
}

/// Why nothing was bought.
#[derive(Debug, thiserror::Error)]
pub enum SaleError {
    /// There is no such sale, or nothing left of it.
    #[error("sold out")]
    SoldOut,
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
/// is noted, under the request's id, in the transaction that counts the stock down.
#[idempotent(
    prefix = "order:buy",
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
    if !stock::has_bought(&shop.pool, &request.request_id).await? {
        let mut tx = DB::begin(&shop.pool).await?;
        if !stock::take(&mut tx, &request.sale_no).await? {
            return Err(SaleError::SoldOut);
        }
        stock::note(
            &mut tx,
            &request.request_id,
            &request.sale_no,
            &request.buyer,
        )
        .await?;
        tx.commit().await?;
    }
    Ok(Ticket {
        sale_no: request.sale_no,
        buyer: request.buyer,
    })
}

/// A retry may run after either: what was not committed did not happen, and what was is found.
fn meaning(error: &SaleError) -> OnError {
    match error {
        SaleError::SoldOut => OnError::Fail,
        SaleError::Database(_) | SaleError::Guard(_) => OnError::Release,
    }
}

impl From<SaleError> for Refusal {
    fn from(error: SaleError) -> Self {
        match &error {
            SaleError::SoldOut => Self::new(StatusCode::CONFLICT, "sold_out", error.to_string()),
            SaleError::Database(error) => Self::internal(error),
            SaleError::Guard(error) => error.clone().into(),
        }
    }
}
