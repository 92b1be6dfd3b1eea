//! Transaction mode and lease mode beside the same business transaction without a guard.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Result, ensure};
use idem_core::transaction::Database;
use idem_core::{Idempotency, idempotent};
use sqlx::{Pool, Transaction};

use crate::beside::{Place, Row, measure};
use crate::order::{Order, Receipt, paid, receipt};
use crate::rounds::{Call, Load};

pub(crate) mod postgres;
pub(crate) mod sqlite;

/// A database with accounts, a ledger, and the table of records.
pub(crate) trait Business: Database {
    /// A transaction as the users of transaction mode are told to begin it.
    fn begin(
        pool: &Pool<Self>,
    ) -> impl Future<Output = sqlx::Result<Transaction<'static, Self>>> + Send;

    /// The business: an account gets less, and the ledger says why.
    fn pay(
        connection: &mut Self::Connection,
        order: &Order,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// The result that stands in the table `request`, or the key taken for the transaction.
    fn ask_by_hand(
        connection: &mut Self::Connection,
        key: &str,
    ) -> impl Future<Output = Result<Option<Vec<u8>>>> + Send;

    /// Writes the result of a key that was taken.
    fn write_by_hand(
        connection: &mut Self::Connection,
        key: &str,
        result: &[u8],
    ) -> impl Future<Output = Result<()>> + Send;
}

/// The accounts that orders are spread over.
const ACCOUNTS: u64 = 1_000;

/// The account of an order, and its amount.
fn account_and_amount(order: &Order) -> Result<(i64, i64), std::num::ParseIntError> {
    let number: u64 = order.number.parse()?;
    Ok((
        (number % ACCOUNTS).cast_signed(),
        order.amount.cast_signed(),
    ))
}

/// A database, and an engine whose records are in it.
struct Shop<D: Business> {
    pool: Pool<D>,
    idem: Idempotency,
}

async fn pay<D: Business>(tx: &mut Transaction<'_, D>, order: &Order) -> Result<Receipt> {
    D::pay(tx, order).await?;
    Ok(receipt(order))
}

async fn pay_and_commit<D: Business>(shop: &Shop<D>, order: &Order) -> Result<Receipt> {
    let mut tx = D::begin(&shop.pool).await?;
    let receipt = pay(&mut tx, order).await?;
    tx.commit().await?;
    Ok(receipt)
}

#[idempotent(prefix = "bench:tx", key = "order.number", expire = 600, tx = tx, engine = shop.idem)]
async fn pay_in_transaction<D: Business>(
    shop: &Shop<D>,
    tx: &mut Transaction<'_, D>,
    order: &Order,
) -> Result<Receipt> {
    pay(tx, order).await
}

#[idempotent(prefix = "bench:lease", key = "order.number", expire = 600, engine = shop.idem)]
async fn pay_on_lease<D: Business>(shop: &Shop<D>, order: &Order) -> Result<Receipt> {
    pay_and_commit(shop, order).await
}

/// What a careful author writes: no savepoint, so that the caller has to roll back after an error, a
/// panic or a time-out; nothing that ends, no payload compared, no attempt told.
async fn pay_by_hand<D: Business>(shop: &Shop<D>, order: &Order) -> Result<Receipt> {
    let mut tx = D::begin(&shop.pool).await?;
    let receipt = match D::ask_by_hand(&mut tx, &order.number).await? {
        Some(result) => serde_json::from_slice(&result)?,
        None => {
            let receipt = pay(&mut tx, order).await?;
            let result = serde_json::to_vec(&receipt)?;
            D::write_by_hand(&mut tx, &order.number, &result).await?;
            receipt
        }
    };
    tx.commit().await?;
    Ok(receipt)
}

struct Bare<D: Business>(Arc<Shop<D>>);

impl<D: Business> Call for Bare<D> {
    async fn call(&self, number: u64) -> Result<()> {
        black_box(pay_and_commit(&self.0, &Order::numbered(number)).await?);
        Ok(())
    }
}

struct ByHand<D: Business>(Arc<Shop<D>>);

impl<D: Business> Call for ByHand<D> {
    async fn call(&self, number: u64) -> Result<()> {
        black_box(pay_by_hand(&self.0, &Order::numbered(number)).await?);
        Ok(())
    }
}

struct InTransaction<D: Business>(Arc<Shop<D>>);

impl<D: Business> Call for InTransaction<D> {
    async fn call(&self, number: u64) -> Result<()> {
        let mut tx = D::begin(&self.0.pool).await?;
        let receipt = pay_in_transaction(&self.0, &mut tx, &Order::numbered(number)).await?;
        tx.commit().await?;
        black_box(receipt);
        Ok(())
    }
}

struct OnLease<D: Business>(Arc<Shop<D>>);

impl<D: Business> Call for OnLease<D> {
    async fn call(&self, number: u64) -> Result<()> {
        black_box(pay_on_lease(&self.0, &Order::numbered(number)).await?);
        Ok(())
    }
}

/// Without the guard, by hand, in transaction mode, in lease mode.
struct Rows([Row; 4]);

impl Rows {
    fn of<D: Business>(pool: Pool<D>, idem: Idempotency) -> Self {
        let shop = Arc::new(Shop { pool, idem });
        Self([
            Row::new("bare", Bare(Arc::clone(&shop))),
            Row::new("by hand", ByHand(Arc::clone(&shop))),
            Row::new("transaction mode", InTransaction(Arc::clone(&shop))),
            Row::new("lease mode", OnLease(shop)),
        ])
    }

    /// `target` is transaction mode's; the others have none.
    async fn measure(
        &self,
        load: Load,
        rounds: usize,
        target: f64,
        place: &impl Place,
    ) -> Result<()> {
        let [bare, by_hand, transaction, lease] = &self.0;
        let rows = [
            (bare, None),
            (by_hand, None),
            (transaction, Some(target)),
            (lease, None),
        ];
        let before = paid();
        measure(&rows, load, rounds, place).await?;
        let expected = rows.len() as u64 * (rounds as u64 + 1) * load.calls;
        let ran = paid() - before;
        ensure!(ran == expected, "bodies ran {ran} times, not {expected}");
        Ok(())
    }
}
