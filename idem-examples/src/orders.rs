//! Orders: a table with a unique request id and a small state machine.

use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, SqlitePool};

/// An order, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number, given by the database.
    pub order_no: String,
    /// What is bought.
    pub item: String,
    /// How many.
    pub quantity: u32,
    /// What it costs in all, in cents.
    pub amount_cents: i64,
    /// Whether it is paid.
    pub status: Status,
    /// Grows with each change of the status.
    pub version: i64,
    /// The charge that paid it.
    pub charge_no: Option<i64>,
}

/// UNPAID → PAID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Waits for its payment.
    Unpaid,
    /// Has it.
    Paid,
}

/// What is about to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The client's own id of this request.
    pub request_id: String,
    /// What is bought.
    pub item: String,
    /// How many.
    pub quantity: u32,
    /// What it costs in all, in cents.
    pub amount_cents: i64,
}

/// What became of a change of status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// The status was changed.
    Applied,
    /// The same charge had paid the order before.
    AlreadyThere,
    /// Somebody else changed the order first.
    Conflict,
}

/// The table of orders. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Orders {
    pool: SqlitePool,
}

impl FromRow<'_, SqliteRow> for Order {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let charge_no: Option<i64> = row.try_get("charge_no")?;
        Ok(Self {
            order_no: row.try_get("order_no")?,
            item: row.try_get("item")?,
            quantity: row.try_get("quantity")?,
            amount_cents: row.try_get("amount_cents")?,
            status: match row.try_get("status")? {
                "paid" => Status::Paid,
                _ => Status::Unpaid,
            },
            version: row.try_get("version")?,
            charge_no,
        })
    }
}

impl Orders {
    /// The orders in this database.
    #[must_use]
    pub fn new(pool: SqlitePool) -> Self {
        Self { pool }
    }

    /// Stores the draft, or gives the order that its request id made before, whatever that says.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Concurrent calls on the same key
    /// The unique constraint lets one in; the others get its order.
    pub async fn insert_or_get(&self, draft: &Draft) -> Result<Order, sqlx::Error> {
        sqlx::query(
            "INSERT INTO orders (request_id, item, quantity, amount_cents) VALUES (?, ?, ?, ?)
             ON CONFLICT (request_id) DO NOTHING",
        )
        .bind(&draft.request_id)
        .bind(&draft.item)
        .bind(draft.quantity)
        .bind(draft.amount_cents)
        .execute(&self.pool)
        .await?;
        sqlx::query_as("SELECT * FROM orders WHERE request_id = ?")
            .bind(&draft.request_id)
            .fetch_one(&self.pool)
            .await
    }

    /// The order with this number.
    ///
    /// # Errors
    /// What the database says.
    pub async fn find(&self, order_no: &str) -> Result<Option<Order>, sqlx::Error> {
        sqlx::query_as("SELECT * FROM orders WHERE order_no = ?")
            .bind(order_no)
            .fetch_optional(&self.pool)
            .await
    }

    /// The newest orders, newest first.
    ///
    /// # Errors
    /// What the database says.
    pub async fn newest(&self, count: u32) -> Result<Vec<Order>, sqlx::Error> {
        sqlx::query_as("SELECT * FROM orders ORDER BY rowid DESC LIMIT ?")
            .bind(count)
            .fetch_all(&self.pool)
            .await
    }

    /// UNPAID → PAID by this charge, if the order is still as it was read.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Concurrent calls on the same key
    /// The version lets one through; for the others see [`Transition`].
    pub async fn mark_paid(
        &self,
        order: &Order,
        charge_no: i64,
    ) -> Result<Transition, sqlx::Error> {
        let changed = sqlx::query(
            "UPDATE orders SET status = 'paid', charge_no = ?, version = version + 1
             WHERE order_no = ? AND status = 'unpaid' AND version = ?",
        )
        .bind(charge_no)
        .bind(&order.order_no)
        .bind(order.version)
        .execute(&self.pool)
        .await?;
        if changed.rows_affected() == 1 {
            return Ok(Transition::Applied);
        }
        let paid_by = self
            .find(&order.order_no)
            .await?
            .and_then(|order| order.charge_no);
        Ok(if paid_by == Some(charge_no) {
            Transition::AlreadyThere
        } else {
            Transition::Conflict
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database;

    #[tokio::test]
    async fn an_order_is_paid_by_one_charge() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let orders = Orders::new(database::open(&folder.path().join("orders.sqlite")).await?);
        let draft = Draft {
            request_id: "r-1".into(),
            item: "tea".into(),
            quantity: 1,
            amount_cents: 420,
        };
        let as_read = orders.insert_or_get(&draft).await?;
        assert_eq!(orders.mark_paid(&as_read, 7).await?, Transition::Applied);
        assert_eq!(
            orders.mark_paid(&as_read, 7).await?,
            Transition::AlreadyThere
        );
        assert_eq!(orders.mark_paid(&as_read, 8).await?, Transition::Conflict);
        let paid = orders.insert_or_get(&draft).await?;
        assert_eq!((paid.status, paid.charge_no), (Status::Paid, Some(7)));
        Ok(())
    }
}
