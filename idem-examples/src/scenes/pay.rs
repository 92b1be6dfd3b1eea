//! Pay an order: the guard around a charge that must not happen twice, and the order's own state
//! machine behind it.

use axum::http::StatusCode;
use idem_core::states::Answer;
use idem_core::{Attempt, OnError, Recovered, idempotent};
use serde::{Deserialize, Serialize};

use crate::answer::Refusal;
use crate::database::Dialect;
use crate::gateway::{Card, Charge, ChargeError, ChargeRequest};
use crate::orders::{self, ChangeError, Order, Status};
use crate::shop::Shop;

/// One business request: this order is to be paid.
#[derive(Debug, Clone)]
pub struct PayRequest {
    /// Which order; the key, since an order is paid once.
    pub order_no: String,
    /// By which card. Not a part of the key: after a refusal another card may pay.
    pub card: Card,
}

/// The proof of a payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which order was paid.
    pub order_no: String,
    /// How much, in cents.
    pub amount_cents: i64,
    /// The provider's number of the charge.
    pub charge_no: i64,
}

/// Why there is no receipt.
#[derive(Debug, thiserror::Error)]
pub enum PayError {
    /// There is no such order.
    #[error("there is no such order")]
    NoSuchOrder,
    /// The order's money was given back; nothing was charged now.
    #[error("the order was refunded")]
    Refunded,
    /// There is no attempt whose fence would tell its charge from others; nothing was charged.
    #[error("nothing guards this payment")]
    Unguarded,
    /// The provider did not charge, or nobody knows.
    #[error(transparent)]
    Charge(#[from] ChargeError),
    /// The card was charged, but another charge had paid the order.
    #[error("the order was paid by another charge meanwhile")]
    PaidTwice,
    /// The card was charged; the order's status could not be changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The database failed.
    #[error("the orders can not be read or written: {0}")]
    Database(#[from] sqlx::Error),
    /// The guard refused.
    #[error(transparent)]
    Guard(#[from] idem_core::Error),
}

/// Charges the card and marks the order as paid.
///
/// # Errors
/// See [`PayError`].
///
/// # Cancel safety
/// Dropped, the body goes on in its own task: a client that hangs up cancels no payment.
///
/// # Concurrent calls on the same key
/// One runs; the others wait a second for its receipt, then get `InProgress`. An attempt that died
/// behind its checkpoint is looked up at the provider by the next call, after its lease of 5 s.
#[idempotent(
    prefix = "order:pay",
    key = "request.order_no",
    expire = "24h",
    lease = 5,
    in_progress = "wait",
    wait = "1s",
    on_error = meaning,
    recover = ask_provider(&shop, &request),
    checkpoint = true,
    message = "This order is being paid.",
    detach = true
)]
pub async fn pay<DB: Dialect>(shop: Shop<DB>, request: PayRequest) -> Result<Receipt, PayError> {
    let order = find(&shop, &request).await?;
    if order.status == Status::Refunded {
        return Err(PayError::Refunded);
    }
    if let Some(charge_no) = order.charge_no {
        // Paid elsewhere, or so long ago that its record has expired.
        return Ok(receipt(&order, charge_no));
    }
    let attempt = attempt()?;
    // What has failed or died before this is known to have charged nobody, and is simply run again.
    attempt.checkpoint().await?;
    let asked = charge_for(&order, &request, &attempt);
    let charge = shop.gateway.charge(asked).await?;
    mark_paid(&shop, &order, charge).await
}

/// What an error says about the card. A database that fails before the checkpoint leaves no doubt,
/// whatever is said here.
fn meaning(error: &PayError) -> OnError {
    match error {
        // Those of the guard come from the checkpoint.
        PayError::NoSuchOrder | PayError::Refunded | PayError::Unguarded | PayError::Guard(_) => {
            OnError::Release
        }
        PayError::Charge(ChargeError::Declined | ChargeError::Voided) => OnError::Fail,
        PayError::Charge(ChargeError::TimedOut | ChargeError::Ledger(_))
        | PayError::PaidTwice
        | PayError::Change(_)
        | PayError::Database(_) => OnError::Abandon,
    }
}

/// An attempt died behind its checkpoint: has it charged? What it may still have under way is voided
/// first, so that "no" stays true while the body runs again.
async fn ask_provider<DB: Dialect>(
    shop: &Shop<DB>,
    request: &PayRequest,
) -> Result<Recovered<Receipt>, PayError> {
    let order = find(shop, request).await?;
    let fence = attempt()?.fence().as_u64();
    let charge = shop.gateway.void_before(&order.order_no, fence).await?;
    match (order.charge_no, charge) {
        // Also where it was another charge: that there are two is for somebody to mend, and no reason
        // to doubt the order for days.
        (Some(paid), charge) => {
            if let Some(charge) = charge.filter(|charge| charge.charge_no != paid) {
                say_paid_twice(&order, charge);
            }
            Ok(Recovered::Done(receipt(&order, paid)))
        }
        (None, Some(charge)) => Ok(Recovered::Done(mark_paid(shop, &order, charge).await?)),
        (None, None) => Ok(Recovered::NotDone),
    }
}

async fn find<DB: Dialect>(shop: &Shop<DB>, request: &PayRequest) -> Result<Order, PayError> {
    let order = orders::find(&shop.pool, &request.order_no).await?;
    order.ok_or(PayError::NoSuchOrder)
}

async fn mark_paid<DB: Dialect>(
    shop: &Shop<DB>,
    order: &Order,
    charge: Charge,
) -> Result<Receipt, PayError> {
    let (order_no, version) = (&order.order_no, Some(order.version));
    let mut tx = DB::begin(&shop.pool).await?;
    match orders::pay(&mut tx, order_no, charge.charge_no, version).await? {
        Answer::Applied { .. } | Answer::AlreadyThere { .. } => tx.commit().await?,
        _ => {
            say_paid_twice(order, charge);
            return Err(PayError::PaidTwice);
        }
    }
    Ok(receipt(order, charge.charge_no))
}

fn say_paid_twice(order: &Order, charge: Charge) {
    let order_no = &order.order_no;
    tracing::error!(
        order_no,
        charge.charge_no,
        "charged for an order that is paid"
    );
}

fn charge_for(order: &Order, request: &PayRequest, attempt: &Attempt) -> ChargeRequest {
    ChargeRequest {
        order_no: order.order_no.clone(),
        amount_cents: order.amount_cents,
        card: request.card,
        fence: attempt.fence().as_u64(),
    }
}

/// By its fence the provider tells a request that was voided from the one after it.
fn attempt() -> Result<Attempt, PayError> {
    // No fence of 0 where there is none: a void before 0 ends nothing, and "no" would not stay true.
    Attempt::current().ok_or(PayError::Unguarded)
}

fn receipt(order: &Order, charge_no: i64) -> Receipt {
    Receipt {
        order_no: order.order_no.clone(),
        amount_cents: order.amount_cents,
        charge_no,
    }
}

impl From<PayError> for Refusal {
    fn from(error: PayError) -> Self {
        let (status, code) = match &error {
            PayError::NoSuchOrder => (StatusCode::NOT_FOUND, "no_such_order"),
            PayError::Refunded => (StatusCode::CONFLICT, "refunded"),
            PayError::Charge(ChargeError::Declined) => (StatusCode::PAYMENT_REQUIRED, "declined"),
            PayError::Charge(ChargeError::TimedOut) => {
                (StatusCode::GATEWAY_TIMEOUT, "provider_timed_out")
            }
            PayError::Charge(ChargeError::Voided) => (StatusCode::CONFLICT, "voided"),
            PayError::PaidTwice => (StatusCode::CONFLICT, "paid_twice"),
            PayError::Charge(ChargeError::Ledger(error)) | PayError::Database(error) => {
                return Self::internal(error);
            }
            PayError::Change(error) => return Self::internal(error),
            PayError::Unguarded => return Self::internal(&error),
            PayError::Guard(error) => return error.clone().into(),
        };
        Self::new(status, code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use idem_core::{Idempotency, Key, Policy};
    use sqlx::Sqlite;

    use super::*;
    use crate::database;
    use crate::orders::Draft;

    #[tokio::test]
    async fn a_database_that_fails_before_the_charge_leaves_nobody_in_doubt() -> anyhow::Result<()>
    {
        let folder = tempfile::tempdir()?;
        let pool = database::sqlite(&folder.path().join("orders.sqlite")).await?;
        let ledger = database::ledger(&folder.path().join("ledger.sqlite")).await?;
        let shop = Shop::new(pool, ledger);
        let idem = Idempotency::memory();
        let mistyped = PayRequest {
            order_no: "A-1".into(),
            card: Card::Good,
        };
        let rename =
            async |statement: &'static str| sqlx::raw_sql(statement).execute(&shop.pool).await;
        rename("ALTER TABLE orders RENAME TO away").await?;
        let failed = idem.scope(pay(shop.clone(), mistyped.clone())).await;
        assert!(matches!(failed, Err(PayError::Database(_))), "{failed:?}");
        rename("ALTER TABLE away RENAME TO orders").await?;
        let found = idem.scope(pay(shop.clone(), mistyped)).await;
        assert!(matches!(found, Err(PayError::NoSuchOrder)), "{found:?}");
        Ok(())
    }

    #[tokio::test]
    async fn an_order_that_another_charge_has_paid_leaves_no_payment_in_doubt() -> anyhow::Result<()>
    {
        let folder = tempfile::tempdir()?;
        let pool = database::sqlite(&folder.path().join("orders.sqlite")).await?;
        let ledger = database::ledger(&folder.path().join("ledger.sqlite")).await?;
        let shop = Shop::new(pool, ledger);
        let draft = Draft {
            request_id: "r-1".into(),
            item: "tea".into(),
            quantity: 1,
            amount_cents: 420,
        };
        let order = orders::insert_or_get(&shop.pool, &draft).await?;
        let idem = Idempotency::memory();
        // An attempt charges and dies before it has written it down.
        let (engine, key) = (idem.clone(), Key::new("order:pay", &order.order_no)?);
        let died = tokio::spawn(async move {
            let body = async || -> Result<(), idem_core::Error> {
                panic!("a panic that the test asked for")
            };
            engine.run(key, Policy::new(), body).await
        });
        assert!(died.await.is_err());
        shop.gateway.charge_there(&order.order_no, 420).await?;
        // Then the provider tells of another charge.
        let second = shop.gateway.charge_there(&order.order_no, 420).await?;
        let mut tx = Sqlite::begin(&shop.pool).await?;
        let answer = orders::pay(&mut tx, &order.order_no, second.charge_no, None).await?;
        assert!(matches!(answer, Answer::Applied { .. }));
        tx.commit().await?;

        let request = PayRequest {
            order_no: order.order_no.clone(),
            card: Card::Good,
        };
        for _ in 0..2 {
            let paid = idem.scope(pay(shop.clone(), request.clone())).await?;
            assert_eq!(paid, receipt(&order, second.charge_no));
        }
        Ok(())
    }
}
