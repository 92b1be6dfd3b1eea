//! Transaction mode and lease mode beside the same business transaction without a guard.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Result, ensure};
use idem_core::transaction::Database;
use idem_core::{Idempotency, idempotent};
use sqlx::{Pool, Transaction};

use crate::beside::{Row, measure};
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

struct Bare<D: Business>(Arc<Shop<D>>);

impl<D: Business> Call for Bare<D> {
    async fn call(&self, number: u64) -> Result<()> {
        black_box(pay_and_commit(&self.0, &Order::numbered(number)).await?);
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

/// Without the guard, in transaction mode, in lease mode.
struct Rows([Row; 3]);

impl Rows {
    fn of<D: Business>(pool: Pool<D>, idem: Idempotency) -> Self {
        let shop = Arc::new(Shop { pool, idem });
        Self([
            Row::new("bare", Bare(Arc::clone(&shop))),
            Row::new("transaction mode", InTransaction(Arc::clone(&shop))),
            Row::new("lease mode", OnLease(shop)),
        ])
    }

    /// `target` is transaction mode's; lease mode has none.
    async fn measure(
        &self,
        load: Load,
        rounds: usize,
        target: f64,
        fresh: impl AsyncFn() -> Result<()>,
    ) -> Result<()> {
        let [bare, transaction, lease] = &self.0;
        let rows = [(bare, None), (transaction, Some(target)), (lease, None)];
        let before = paid();
        measure(&rows, load, rounds, fresh).await?;
        let expected = 3 * (rounds as u64 + 1) * load.calls;
        let ran = paid() - before;
        ensure!(ran == expected, "bodies ran {ran} times, not {expected}");
        Ok(())
    }
}
