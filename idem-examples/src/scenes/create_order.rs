//! Create an order: a unique constraint keeps it single for ever, the record answers duplicates
//! with the first answer, and tells another order under the same request id.

use axum::http::StatusCode;
use idem_core::idempotent;
use serde::{Deserialize, Serialize};

use crate::answer::Refusal;
use crate::database::Dialect;
use crate::input::fits;
use crate::orders::{self, Draft, Order, StoreError};
use crate::shop::Shop;

/// What a client sends. `request_id` is made by the client, once for each order it means.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NewOrder {
    /// The client's own id of this request, such as a UUID.
    pub request_id: String,
    /// `tea`, `cup` or `pot`.
    pub item: String,
    /// 1 to 99.
    pub quantity: i64,
}

/// Why there is no order.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is no such item, or not in this quantity.
    #[error("order 1 to 99 of tea, cup or pot, under an id of 1 to 100 bytes")]
    Invalid,
    /// The request id belongs to an order that says something else.
    #[error("this request id was used for another order")]
    AnotherOrder,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The guard refused.
    #[error(transparent)]
    Guard(#[from] idem_core::Error),
}

/// Stores an order and gives it a number.
///
/// # Errors
/// See [`CreateError`].
///
/// # Concurrent calls on the same key
/// One runs, the others wait for its order. Running again after a crash is harmless here: the
/// constraint gives the order that is there.
#[idempotent(
    prefix = "order:create",
    // Nobody logs in to order here. Where somebody does, an id that a client makes is that user's
    // alone: `key = (user.name, request.request_id)`, and the same in the unique constraint. By the
    // id alone, whoever has seen or guessed it is given the order, or takes the id away.
    key = "request.request_id",
    fingerprint = "request",
    expire = "24h",
    lease = 5,
    in_progress = "wait",
    on_abandoned = "rerun",
    on_error = "release",
    detach = true
)]
pub async fn create_order<DB: Dialect>(
    shop: Shop<DB>,
    request: NewOrder,
) -> Result<Order, CreateError> {
    store(&shop, request).await
}

/// The order of this request id, stored now or before.
pub(super) async fn store<DB: Dialect>(
    shop: &Shop<DB>,
    request: NewOrder,
) -> Result<Order, CreateError> {
    let draft = price(request)?;
    let order = orders::insert_or_get(&shop.pool, &draft).await?;
    // The record may have expired; the row has not.
    if (&order.item, order.quantity) != (&draft.item, draft.quantity) {
        return Err(CreateError::AnotherOrder);
    }
    Ok(order)
}

fn price(request: NewOrder) -> Result<Draft, CreateError> {
    let each = match request.item.as_str() {
        "tea" => 420,
        "cup" => 1250,
        "pot" => 3900,
        _ => return Err(CreateError::Invalid),
    };
    let has_id = !request.request_id.is_empty() && fits(&request.request_id);
    if !(1..=99).contains(&request.quantity) || !has_id {
        return Err(CreateError::Invalid);
    }
    Ok(Draft {
        request_id: request.request_id,
        item: request.item,
        quantity: request.quantity,
        amount_cents: each * request.quantity,
    })
}

impl From<CreateError> for Refusal {
    fn from(error: CreateError) -> Self {
        match &error {
            CreateError::Invalid => {
                Self::new(StatusCode::BAD_REQUEST, "invalid_order", error.to_string())
            }
            CreateError::AnotherOrder => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "another_order",
                error.to_string(),
            ),
            CreateError::Store(error) => Self::internal(error),
            CreateError::Guard(error) => error.clone().into(),
        }
    }
}
