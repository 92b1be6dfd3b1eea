//! Orders: a table with a unique request id and a small state machine.

use serde::{Deserialize, Serialize};
use sqlx::{FromRow, Pool, Row};

use crate::database::{Dialect, get, sql};

/// An order, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number.
    pub order_no: String,
    /// What is bought.
    pub item: String,
    /// How many.
    pub quantity: i64,
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
    pub quantity: i64,
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

impl<R> FromRow<'_, R> for Order
where
    R: Row<Database: Dialect<Row = R>>,
{
    fn from_row(row: &R) -> sqlx::Result<Self> {
        let status: String = get(row, "status")?;
        Ok(Self {
            order_no: get(row, "order_no")?,
            item: get(row, "item")?,
            quantity: get(row, "quantity")?,
            amount_cents: get(row, "amount_cents")?,
            status: match &*status {
                "paid" => Status::Paid,
                _ => Status::Unpaid,
            },
            version: get(row, "version")?,
            charge_no: get(row, "charge_no")?,
        })
    }
}

/// Stores the draft, or gives the order that its request id made before, whatever that says.
///
/// # Errors
/// What the database says.
///
/// # Concurrent calls on the same key
/// The unique constraint lets one in; the others get its order.
pub async fn insert_or_get<DB: Dialect>(pool: &Pool<DB>, draft: &Draft) -> sqlx::Result<Order> {
    let mut connection = pool.acquire().await?;
    let inserted = sql::<DB>(
        "INSERT INTO orders (order_no, request_id, item, quantity, amount_cents)
         VALUES (?, ?, ?, ?, ?)",
    )
    .bind(number())
    .bind(draft.request_id.clone())
    .bind(draft.item.clone())
    .bind(draft.quantity)
    .bind(draft.amount_cents)
    .execute(&mut connection)
    .await;
    let taken = |error: &sqlx::Error| matches!(error, sqlx::Error::Database(error) if error.is_unique_violation());
    if let Err(error) = inserted
        && !taken(&error)
    {
        return Err(error);
    }
    sql::<DB>("SELECT * FROM orders WHERE request_id = ?")
        .bind(draft.request_id.clone())
        .fetch_optional(&mut connection)
        .await?
        .ok_or(sqlx::Error::RowNotFound)
}

/// Random and not counted: a new database beside an old Redis must not meet the records of others.
fn number() -> String {
    format!("A-{:08X}", fastrand::u32(..))
}

/// The order with this number.
///
/// # Errors
/// What the database says.
pub async fn find<DB: Dialect>(pool: &Pool<DB>, order_no: &str) -> sqlx::Result<Option<Order>> {
    let mut connection = pool.acquire().await?;
    sql::<DB>("SELECT * FROM orders WHERE order_no = ?")
        .bind(order_no.to_owned())
        .fetch_optional(&mut connection)
        .await
}

/// The newest orders, newest first.
///
/// # Errors
/// What the database says.
pub async fn newest<DB: Dialect>(pool: &Pool<DB>, count: i64) -> sqlx::Result<Vec<Order>> {
    let mut connection = pool.acquire().await?;
    sql::<DB>("SELECT * FROM orders ORDER BY id DESC LIMIT ?")
        .bind(count)
        .fetch_all(&mut connection)
        .await
}

/// UNPAID → PAID by this charge, if the order is still as it was read.
///
/// # Errors
/// What the database says.
///
/// # Concurrent calls on the same key
/// The version lets one through; for the others see [`Transition`].
pub async fn mark_paid<DB: Dialect>(
    pool: &Pool<DB>,
    order: &Order,
    charge_no: i64,
) -> sqlx::Result<Transition> {
    let mut connection = pool.acquire().await?;
    let changed = sql::<DB>(
        "UPDATE orders SET status = 'paid', charge_no = ?, version = version + 1
         WHERE order_no = ? AND status = 'unpaid' AND version = ?",
    )
    .bind(charge_no)
    .bind(order.order_no.clone())
    .bind(order.version)
    .execute(&mut connection)
    .await?;
    if changed == 1 {
        return Ok(Transition::Applied);
    }
    drop(connection);
    let paid_by = find(pool, &order.order_no)
        .await?
        .and_then(|order| order.charge_no);
    Ok(if paid_by == Some(charge_no) {
        Transition::AlreadyThere
    } else {
        Transition::Conflict
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database;

    #[tokio::test]
    async fn an_order_is_paid_by_one_charge() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let pool = database::sqlite(&folder.path().join("orders.sqlite")).await?;
        let draft = Draft {
            request_id: "r-1".into(),
            item: "tea".into(),
            quantity: 1,
            amount_cents: 420,
        };
        let as_read = insert_or_get(&pool, &draft).await?;
        assert_eq!(mark_paid(&pool, &as_read, 7).await?, Transition::Applied);
        assert_eq!(
            mark_paid(&pool, &as_read, 7).await?,
            Transition::AlreadyThere
        );
        assert_eq!(mark_paid(&pool, &as_read, 8).await?, Transition::Conflict);
        let paid = insert_or_get(&pool, &draft).await?;
        assert_eq!((paid.status, paid.charge_no), (Status::Paid, Some(7)));
        Ok(())
    }
}
