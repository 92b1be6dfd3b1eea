//! Orders: a table with a unique request id and a small state machine.

use idem_core::States;
use idem_core::sql::{InsertError, SqlError};
use idem_core::states::{Answer, Transition, TransitionError};
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, Pool, Row, Transaction};

use crate::database::{Dialect, Sql, Text, get, sql};

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

/// Where an order is, and what may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, States)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Waits for its payment.
    #[state(code = 1, to(Paid))]
    Unpaid,
    /// Has it.
    #[state(code = 2, to(Shipped, Refunded))]
    Paid,
    /// Is on its way.
    #[state(code = 3, to(Refunded))]
    Shipped,
    /// Has given its payment back.
    #[state(code = 4)]
    Refunded,
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

/// Why there is neither a new order nor an old one.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// By the constraint.
    #[error("the order can not be stored: {0}")]
    Insert(#[from] InsertError),
    /// On the way to it.
    #[error("the orders can not be reached: {0}")]
    Database(#[from] sqlx::Error),
}

/// Why a status could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// By the state machine.
    #[error(transparent)]
    Transition(#[from] TransitionError),
    /// In the order itself.
    #[error("the order can not be written: {0}")]
    Database(#[from] SqlError),
}

impl<R> FromRow<'_, R> for Order
where
    R: Row<Database: Dialect<Row = R>>,
{
    fn from_row(row: &R) -> sqlx::Result<Self> {
        let status: i64 = get(row, "status")?;
        Ok(Self {
            order_no: get(row, "order_no")?,
            item: get(row, "item")?,
            quantity: get(row, "quantity")?,
            amount_cents: get(row, "amount_cents")?,
            status: known(status)?,
            version: get(row, "version")?,
            charge_no: get(row, "charge_no")?,
        })
    }
}

fn known(code: i64) -> sqlx::Result<Status> {
    let status = i16::try_from(code).ok().and_then(Status::from_code);
    status.ok_or_else(|| sqlx::Error::Decode(format!("no order has the status {code}").into()))
}

/// Stores the draft, or gives the order that its request id made before, whatever that says.
///
/// # Errors
/// What the database says. A retry finds what was stored, or stores it.
///
/// # Concurrent calls on the same key
/// The unique constraint lets one in; the others get its order.
pub async fn insert_or_get<DB: Dialect>(
    pool: &Pool<DB>,
    draft: &Draft,
) -> Result<Order, StoreError> {
    let insert = sql::<DB>(
        "INSERT INTO orders (order_no, request_id, item, quantity, amount_cents)
         VALUES (?, ?, ?, ?, ?)",
    )
    .bind(number())
    .bind(draft.request_id.clone())
    .bind(draft.item.clone())
    .bind(draft.quantity)
    .bind(draft.amount_cents)
    .into_query();
    let select = sql::<DB>("SELECT * FROM orders WHERE request_id = ?")
        .bind(draft.request_id.clone())
        .into_query_as()?;
    let mut connection = pool.acquire().await?;
    let order =
        idem_core::sql::insert_or_get(&mut *connection, "orders_by_request", insert, select)
            .await?;
    Ok(order.into_row())
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
    by_number::<DB>(order_no)
        .fetch_optional(&mut connection)
        .await
}

/// The same in a transaction.
///
/// # Errors
/// What the database says.
pub async fn find_in<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    order_no: &str,
) -> sqlx::Result<Option<Order>> {
    by_number::<DB>(order_no).fetch_optional(tx).await
}

fn by_number<DB: Dialect>(order_no: &str) -> Sql<DB> {
    sql("SELECT * FROM orders WHERE order_no = ?").bind(order_no.to_owned())
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

/// Another status for this cause, unless the states do not allow it or the order is no longer as
/// it was read, at the version `expected`. A cause is no delivery and no request: it is the same
/// whenever it is told.
///
/// # Errors
/// What the database says. Roll back then.
///
/// # Concurrent calls on the same key
/// They wait for this transaction to end.
pub async fn change<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    order_no: &str,
    to: Status,
    cause: &str,
    expected: Option<i64>,
) -> Result<Answer<Status>, ChangeError> {
    let id = Text(order_no.to_owned());
    Ok(transition().apply(tx, id, to, cause, expected).await?)
}

/// Paid by this charge.
///
/// # Errors
/// As for [`change`].
///
/// # Concurrent calls on the same key
/// As for [`change`].
pub async fn pay<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    order_no: &str,
    charge_no: i64,
    expected: Option<i64>,
) -> Result<Answer<Status>, ChangeError> {
    let cause = format!("charge {charge_no}");
    let answer = change(tx, order_no, Status::Paid, &cause, expected).await?;
    if let Answer::Applied { .. } = answer {
        sql::<DB>("UPDATE orders SET charge_no = ? WHERE order_no = ?")
            .bind(charge_no)
            .bind(order_no.to_owned())
            .execute(tx)
            .await
            .map_err(SqlError::of::<DB>)?;
    }
    Ok(answer)
}

/// How the table of orders keeps the status.
#[must_use]
pub fn transition() -> Transition<Status> {
    Transition::on("orders")
        .id_column("order_no")
        .log("order_event")
}

#[cfg(test)]
mod tests {
    use sqlx::Sqlite;

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
        let order = insert_or_get(&pool, &draft).await?;
        let paid_by = async |charge_no| -> anyhow::Result<Answer<Status>> {
            let mut tx = Sqlite::begin(&pool).await?;
            let answer = pay(&mut tx, &order.order_no, charge_no, None).await?;
            tx.commit().await?;
            Ok(answer)
        };
        assert!(matches!(paid_by(7).await?, Answer::Applied { .. }));
        assert!(matches!(paid_by(7).await?, Answer::AlreadyThere { .. }));
        // N15
        assert!(matches!(paid_by(8).await?, Answer::Conflict { .. }));
        let paid = insert_or_get(&pool, &draft).await?;
        assert_eq!((paid.status, paid.charge_no), (Status::Paid, Some(7)));
        Ok(())
    }
}
