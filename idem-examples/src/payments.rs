//! What the provider has told us: payments and refunds.

use idem_core::KeyPart;
use idem_core::sql::{InsertError, SqlError, insert_or_get};
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, Pool, Row, Transaction};

use crate::database::{Dialect, get, sql};

/// What the provider tells, as it tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// Which charge it is about. A refund has the number of the charge that it gives back.
    pub charge_no: i64,
    /// What happened to it.
    pub kind: Kind,
    /// For which order.
    pub order_no: String,
    /// How much, in cents.
    pub amount_cents: i64,
}

/// What happened to a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, KeyPart)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The buyer paid.
    #[default]
    Paid,
    /// The buyer has it back.
    Refunded,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Paid => "paid",
            Self::Refunded => "refunded",
        }
    }
}

/// One line of our books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Payment {
    /// For which order.
    pub order_no: String,
    /// Which charge it is about.
    pub charge_no: i64,
    /// What happened to it.
    pub kind: String,
    /// How much, in cents.
    pub amount_cents: i64,
}

impl<R> FromRow<'_, R> for Payment
where
    R: Row<Database: Dialect<Row = R>>,
{
    fn from_row(row: &R) -> sqlx::Result<Self> {
        Ok(Self {
            order_no: get(row, "order_no")?,
            charge_no: get(row, "charge_no")?,
            kind: get(row, "kind")?,
            amount_cents: get(row, "amount_cents")?,
        })
    }
}

/// Writes a line, or gives the one that this event has written before, whatever that says.
///
/// # Errors
/// What the database says. Roll back then.
///
/// # Concurrent calls on the same key
/// The unique constraint lets one in; the others get its line, when its transaction has ended.
pub async fn note<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    note: &Notification,
) -> Result<Payment, InsertError> {
    let insert = sql::<DB>(
        "INSERT INTO payments (order_no, charge_no, kind, amount_cents) VALUES (?, ?, ?, ?)",
    )
    .bind(note.order_no.clone())
    .bind(note.charge_no)
    .bind(note.kind.name().to_owned())
    .bind(note.amount_cents)
    .into_query();
    let select = sql::<DB>(
        "SELECT order_no, charge_no, kind, amount_cents FROM payments
         WHERE charge_no = ? AND kind = ?",
    )
    .bind(note.charge_no)
    .bind(note.kind.name().to_owned())
    .into_query_as()
    .map_err(SqlError::of::<DB>)?;
    let line = insert_or_get(&mut **tx, "payments_by_event", insert, select).await?;
    Ok(line.into_row())
}

/// Whether the charge that `note` is about was given back, as far as we were told.
///
/// # Errors
/// What the database says.
pub async fn was_refunded<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    note: &Notification,
) -> sqlx::Result<bool> {
    let refund: Option<Payment> = sql::<DB>(
        "SELECT order_no, charge_no, kind, amount_cents FROM payments
         WHERE order_no = ? AND charge_no = ? AND kind = ?",
    )
    .bind(note.order_no.clone())
    .bind(note.charge_no)
    .bind(Kind::Refunded.name().to_owned())
    .fetch_optional(tx)
    .await?;
    Ok(refund.is_some())
}

/// What was noted for an order, oldest first.
///
/// # Errors
/// What the database says.
pub async fn of_order<DB: Dialect>(pool: &Pool<DB>, order_no: &str) -> sqlx::Result<Vec<Payment>> {
    let mut connection = pool.acquire().await?;
    sql::<DB>(
        "SELECT order_no, charge_no, kind, amount_cents FROM payments
         WHERE order_no = ? ORDER BY id",
    )
    .bind(order_no.to_owned())
    .fetch_all(&mut connection)
    .await
}
