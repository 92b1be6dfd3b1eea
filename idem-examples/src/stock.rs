//! What a flash sale has left, and who bought.

use idem_core::sql::{InsertError, Insertion, SqlError, insert_or_get};
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, Pool, Row, Transaction};

use crate::database::{Dialect, get, sql};

/// A sale, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sale {
    /// Its number.
    pub sale_no: String,
    /// How many are left.
    pub available: i64,
    /// How many were bought.
    pub sold: i64,
}

impl<R> FromRow<'_, R> for Sale
where
    R: Row<Database: Dialect<Row = R>>,
{
    fn from_row(row: &R) -> sqlx::Result<Self> {
        Ok(Self {
            sale_no: get(row, "sale_no")?,
            available: get(row, "available")?,
            sold: get(row, "sold")?,
        })
    }
}

/// The proof of a purchase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Which sale.
    pub sale_no: String,
    /// Who bought.
    pub buyer: String,
}

impl<R> FromRow<'_, R> for Ticket
where
    R: Row<Database: Dialect<Row = R>>,
{
    fn from_row(row: &R) -> sqlx::Result<Self> {
        Ok(Self {
            sale_no: get(row, "sale_no")?,
            buyer: get(row, "buyer")?,
        })
    }
}

/// Opens a sale of so many, unless there is one of that number.
///
/// # Errors
/// What the database says.
pub async fn open<DB: Dialect>(pool: &Pool<DB>, sale_no: &str, available: i64) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    let opened = sql::<DB>("INSERT INTO sales (sale_no, available) VALUES (?, ?)")
        .bind(sale_no.to_owned())
        .bind(available)
        .execute(&mut connection)
        .await;
    match opened {
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(()),
        opened => opened.map(drop),
    }
}

/// The sale with this number.
///
/// # Errors
/// What the database says.
pub async fn find<DB: Dialect>(pool: &Pool<DB>, sale_no: &str) -> sqlx::Result<Option<Sale>> {
    let mut connection = pool.acquire().await?;
    sql::<DB>(
        "SELECT sale_no, available,
             (SELECT count(*) FROM purchases WHERE purchases.sale_no = sales.sale_no) AS sold
         FROM sales WHERE sale_no = ?",
    )
    .bind(sale_no.to_owned())
    .fetch_optional(&mut connection)
    .await
}

/// Takes one off the stock, if one is left.
///
/// # Errors
/// What the database says.
///
/// # Concurrent calls on the same key
/// They queue for the row for as long as this transaction lasts, and none takes what is not there.
pub async fn take<DB: Dialect>(tx: &mut Transaction<'_, DB>, sale_no: &str) -> sqlx::Result<bool> {
    let changed = sql::<DB>(
        "UPDATE sales SET available = available - 1 WHERE sale_no = ? AND available >= 1",
    )
    .bind(sale_no.to_owned())
    .execute(tx)
    .await?;
    Ok(changed == 1)
}

/// How many are left (none of a sale that is not there), for the holder of the sale's lock with
/// this fence; `None` if a later holder has asked before. The fence is written before anything is
/// read: a holder before this one can not write any more.
///
/// # Errors
/// What the database says.
pub async fn left<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    sale_no: &str,
    fence: i64,
) -> sqlx::Result<Option<i64>> {
    sql::<DB>("UPDATE sales SET fence = ? WHERE sale_no = ? AND fence <= ?")
        .bind(fence)
        .bind(sale_no.to_owned())
        .bind(fence)
        .execute(tx)
        .await?;
    let rows = sql::<DB>("SELECT available, fence FROM sales WHERE sale_no = ?")
        .bind(sale_no.to_owned())
        .rows(tx)
        .await?;
    let Some(row) = rows.first() else {
        return Ok(Some(0));
    };
    let holder: i64 = get(row, "fence")?;
    let available = get(row, "available")?;
    Ok((holder == fence).then_some(available))
}

/// Writes how many are left, in the transaction that has [asked](left).
///
/// # Errors
/// What the database says.
pub async fn set_left<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    sale_no: &str,
    left: i64,
) -> sqlx::Result<()> {
    sql::<DB>("UPDATE sales SET available = ? WHERE sale_no = ?")
        .bind(left)
        .bind(sale_no.to_owned())
        .execute(tx)
        .await
        .map(drop)
}

/// Notes a purchase, or gives the one that this request has noted before, whatever that says. Whether
/// there is anything to buy is for [`take`] to say, in the same transaction.
///
/// # Errors
/// What the database says. Roll back then.
///
/// # Concurrent calls on the same key
/// The unique constraint lets one in; the others get its purchase, when its transaction has ended.
pub async fn note<DB: Dialect>(
    tx: &mut Transaction<'_, DB>,
    request_id: &str,
    ticket: &Ticket,
) -> Result<Insertion<Ticket>, InsertError> {
    let insert = sql::<DB>("INSERT INTO purchases (request_id, sale_no, buyer) VALUES (?, ?, ?)")
        .bind(request_id.to_owned())
        .bind(ticket.sale_no.clone())
        .bind(ticket.buyer.clone())
        .into_query();
    let select = sql::<DB>("SELECT sale_no, buyer FROM purchases WHERE request_id = ?")
        .bind(request_id.to_owned())
        .into_query_as()
        .map_err(SqlError::of::<DB>)?;
    insert_or_get(&mut **tx, "purchases_by_request", insert, select).await
}

#[cfg(test)]
mod tests {
    use sqlx::Sqlite;

    use super::*;
    use crate::database;

    #[tokio::test]
    async fn a_holder_whose_lock_was_lost_is_told_nothing() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let pool = database::sqlite(&folder.path().join("orders.sqlite")).await?;
        open(&pool, "rush", 10).await?;
        let asked_with = async |sale_no, fence| -> anyhow::Result<Option<i64>> {
            let mut tx = Sqlite::begin(&pool).await?;
            let left = left(&mut tx, sale_no, fence).await?;
            tx.commit().await?;
            Ok(left)
        };
        assert_eq!(asked_with("rush", 5).await?, Some(10));
        assert_eq!(asked_with("rush", 4).await?, None);
        assert_eq!(asked_with("rush", 5).await?, Some(10));
        assert_eq!(asked_with("elsewhere", 5).await?, Some(0));
        Ok(())
    }
}
