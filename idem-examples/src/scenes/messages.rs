//! Message consumer: a message says that a paid order is to be shipped. Brokers deliver at least
//! once and publishers publish again, so the *order* is the key, not the delivery; and since what
//! a message does here is in a database, its record is in the same transaction.

use std::future::Future;
use std::sync::Arc;

use idem_core::consumer::{Consumer, Meaning};
use idem_core::idempotent;
use idem_core::sql::SqlError;
use idem_core::states::{Answer, TransitionError};
use serde::{Deserialize, Serialize};
use sqlx::{Pool, Transaction};

use crate::causes::causes;
use crate::database::Dialect;
use crate::orders::{self, ChangeError, Status};
use crate::rabbit::{Message, Rabbit};
use crate::shop::Shop;

/// Where the messages come from.
pub const QUEUE: &str = "orders.ship";

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipment {
    /// Which order is to be shipped.
    pub order_no: String,
}

/// Why an order was not shipped.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// The message is no [`Shipment`].
    #[error("the message can not be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It may be paid in a moment: the messages of others have their own way.
    #[error("the order is not paid yet")]
    NotPaid,
    /// There is no such order, or its money was given back.
    #[error("there is no order to be shipped")]
    NothingToShip,
    /// The order's state could not be changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] SqlError),
    /// The guard refused.
    #[error(transparent)]
    Guard(#[from] idem_core::Error),
}

/// Ships what the messages say, until `until` ends.
///
/// # Cancel safety
/// Dropped, it leaves the messages in work to be delivered again.
pub async fn listen<DB: Dialect>(shop: Shop<DB>, url: &str, until: impl Future<Output = ()>) {
    let consumer = Arc::new(Consumer::new(meaning));
    let handler = move |message: Message| {
        let shop = shop.clone();
        async move {
            let handled = handle(&shop.pool, &message.payload).await;
            handled.inspect_err(|error| say(&message, error))
        }
    };
    Rabbit::new(url, QUEUE)
        .listen(consumer, handler, until)
        .await;
}

/// The consumer says what becomes of a message, and of the reasons only its own: it can not print an
/// error of ours. Without this line nobody would ever know what a dead letter died of.
fn say(message: &Message, error: &ShipError) {
    if !matches!(error, ShipError::Guard(_)) {
        let id = message.id.as_str();
        tracing::warn!(id, error = %causes(error), "a message was not done");
    }
}

/// Does what one message says.
///
/// # Errors
/// See [`ShipError`]. Nothing was written then, unless the commit itself was not answered.
///
/// # Concurrent calls on the same key
/// As for [`ship`].
pub async fn handle<DB: Dialect>(pool: &Pool<DB>, payload: &[u8]) -> Result<(), ShipError> {
    let shipment: Shipment = serde_json::from_slice(payload)?;
    let mut tx = DB::begin(pool).await.map_err(SqlError::of::<DB>)?;
    ship(&mut tx, &shipment).await?;
    tx.commit().await.map_err(SqlError::of::<DB>)?;
    Ok(())
}

/// Ships the order, once.
///
/// # Errors
/// See [`ShipError`]. Nothing was written then.
///
/// # Concurrent calls on the same key
/// The first has the key until its transaction ends; the others are told to come back, and their
/// messages are delayed.
#[idempotent(prefix = "order:ship", key = "shipment.order_no", expire = "30d", tx = tx)]
pub async fn ship<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    shipment: &Shipment,
) -> Result<(), ShipError> {
    let order_no = &shipment.order_no;
    match orders::change(tx, order_no, Status::Shipped, "shipment", None).await? {
        Answer::Applied { .. } | Answer::AlreadyThere { .. } => Ok(()),
        Answer::Illegal {
            current: Status::Unpaid,
            ..
        } => Err(ShipError::NotPaid),
        _ => Err(ShipError::NothingToShip),
    }
}

/// What an error asks to be done with its message.
#[must_use]
pub fn meaning(error: &ShipError) -> Meaning<'_> {
    match error {
        ShipError::Guard(refusal) => Meaning::Refusal(refusal),
        ShipError::Unreadable(_) => Meaning::Unreadable,
        ShipError::Database(error)
        | ShipError::Change(
            ChangeError::Database(error) | ChangeError::Transition(TransitionError::Sql(error)),
        ) => trouble(error),
        ShipError::NotPaid | ShipError::Change(_) => Meaning::Retry,
        ShipError::NothingToShip => Meaning::Dead,
    }
}

/// Retries are counted: a few minutes of them would make dead letters of the whole queue. So only
/// what this message may be alone to meet is one, such as a value that the database never takes, or
/// what passes by itself.
fn trouble(error: &SqlError) -> Meaning<'_> {
    match error {
        SqlError::Away { .. } | SqlError::LockTimeout { .. } => Meaning::Away,
        _ => Meaning::Retry,
    }
}
