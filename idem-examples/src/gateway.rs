//! A payment provider, simulated: slow, at times silent, and ready to charge the same order twice.
//!
//! What it does like real ones: it goes on when its client hangs up, and it takes a *void*, which
//! ends what may still be under way. It tells what came before the void from what came after by
//! the fence that each request carries.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use tokio::time::{sleep, timeout};

/// A new ledger begins anywhere: its numbers must not meet the records of an older one's.
macro_rules! next_charge_no {
    () => {
        "1 + coalesce((SELECT max(charge_no) FROM charges), abs(random() % 1000000000))"
    };
}

/// How long we wait for the provider's answer.
pub const LIMIT: Duration = Duration::from_secs(3);

/// The card that pays; like real providers' test cards, each has its own fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Card {
    /// Is charged.
    #[default]
    Good,
    /// Is declined.
    Declined,
    /// Is charged, but the answer never arrives.
    AnswerLost,
}

/// An order to charge a card.
#[derive(Debug, Clone)]
pub struct ChargeRequest {
    /// For which order.
    pub order_no: String,
    /// How much, in cents.
    pub amount_cents: i64,
    /// Which card.
    pub card: Card,
    /// The fence of the attempt that asks.
    pub fence: u64,
}

/// One line of the provider's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Its number.
    pub charge_no: i64,
    /// How much, in cents.
    pub amount_cents: i64,
}

/// Why there is no charge to show.
#[derive(Debug, thiserror::Error)]
pub enum ChargeError {
    /// The card was not charged.
    #[error("the card was declined")]
    Declined,
    /// A void came first; the card was not charged.
    #[error("the request was voided before it was carried out")]
    Voided,
    /// Whether the card was charged is not known.
    #[error("the provider did not answer within {LIMIT:?}")]
    TimedOut,
    /// Whether the card was charged is not known.
    #[error("the ledger failed: {0}")]
    Ledger(#[from] sqlx::Error),
}

/// The provider, as its client sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway {
    ledger: SqlitePool,
    delay_ms: Arc<AtomicU64>,
}

impl Gateway {
    /// A provider with its ledger in this database that takes 400 ms for a charge.
    #[must_use]
    pub fn new(ledger: SqlitePool) -> Self {
        Self {
            ledger,
            delay_ms: Arc::new(AtomicU64::new(400)),
        }
    }

    /// How long a charge takes.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms.load(Ordering::Relaxed))
    }

    /// Makes the charges that begin from now on take this many milliseconds.
    pub fn set_delay_ms(&self, delay_ms: u64) {
        self.delay_ms.store(delay_ms, Ordering::Relaxed);
    }

    /// Charges the card.
    ///
    /// # Errors
    /// See [`ChargeError`]: some say that nothing happened, some that nobody knows.
    ///
    /// # Cancel safety
    /// Dropped, it hangs up; the provider goes on.
    ///
    /// # Concurrent calls on the same key
    /// Each is charged.
    pub async fn charge(&self, request: ChargeRequest) -> Result<Charge, ChargeError> {
        let provider = tokio::spawn(self.clone().process(request));
        match timeout(LIMIT, provider).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(ChargeError::TimedOut),
        }
    }

    async fn process(self, request: ChargeRequest) -> Result<Charge, ChargeError> {
        tracing::info!(order_no = request.order_no, "asked to charge");
        let half = self.delay() / 2;
        sleep(half).await;
        if request.card == Card::Declined {
            return Err(ChargeError::Declined);
        }
        let charge = self.book(&request).await?;
        sleep(half).await;
        if request.card == Card::AnswerLost {
            sleep(2 * LIMIT).await;
        }
        charge.ok_or_else(|| {
            tracing::info!(order_no = request.order_no, "refused a voided request");
            ChargeError::Voided
        })
    }

    /// Writes the charge, unless a void came first: one statement, so that nothing comes between.
    async fn book(&self, request: &ChargeRequest) -> Result<Option<Charge>, sqlx::Error> {
        let charge_no: Option<i64> = sqlx::query_scalar(concat!(
            "INSERT INTO charges (charge_no, order_no, amount_cents) SELECT ",
            next_charge_no!(),
            ", ?1, ?2 \
                 WHERE NOT EXISTS (SELECT 1 FROM voids WHERE order_no = ?1 AND fence > ?3) \
                 RETURNING charge_no",
        ))
        .bind(&request.order_no)
        .bind(request.amount_cents)
        .bind(signed(request.fence))
        .fetch_optional(&self.ledger)
        .await?;
        Ok(charge_no.map(|charge_no| Charge {
            charge_no,
            amount_cents: request.amount_cents,
        }))
    }

    /// Ends every request for the order that came with a smaller fence and was not carried out
    /// yet, then says what was carried out. `None` means that nothing was, and that nothing of it
    /// can be any more.
    ///
    /// # Errors
    /// What the ledger says; nothing is known then.
    pub async fn void_before(
        &self,
        order_no: &str,
        fence: u64,
    ) -> Result<Option<Charge>, sqlx::Error> {
        sqlx::query(
            "INSERT INTO voids (order_no, fence) VALUES (?, ?)
             ON CONFLICT (order_no) DO UPDATE SET fence = max(fence, excluded.fence)",
        )
        .bind(order_no)
        .bind(signed(fence))
        .execute(&self.ledger)
        .await?;
        self.first_charge(order_no).await
    }

    /// The first charge for this order.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn first_charge(&self, order_no: &str) -> Result<Option<Charge>, sqlx::Error> {
        let charge: Option<(i64, i64)> = sqlx::query_as(
            "SELECT charge_no, amount_cents FROM charges WHERE order_no = ? ORDER BY charge_no",
        )
        .bind(order_no)
        .fetch_optional(&self.ledger)
        .await?;
        Ok(charge.map(|(charge_no, amount_cents)| Charge {
            charge_no,
            amount_cents,
        }))
    }

    /// Books what a buyer has paid without us, by a code on the provider's own page, say.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn charge_there(
        &self,
        order_no: &str,
        amount_cents: i64,
    ) -> Result<Charge, sqlx::Error> {
        let charge_no = sqlx::query_scalar(concat!(
            "INSERT INTO charges (charge_no, order_no, amount_cents) VALUES (",
            next_charge_no!(),
            ", ?, ?) RETURNING charge_no",
        ))
        .bind(order_no)
        .bind(amount_cents)
        .fetch_one(&self.ledger)
        .await?;
        Ok(Charge {
            charge_no,
            amount_cents,
        })
    }

    /// How often each order was charged; orders without a charge are left out.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn counts(&self) -> Result<HashMap<String, i64>, sqlx::Error> {
        let counts: Vec<_> =
            sqlx::query_as("SELECT order_no, count(*) FROM charges GROUP BY order_no")
                .fetch_all(&self.ledger)
                .await?;
        Ok(counts.into_iter().collect())
    }

    /// How often this order was charged.
    ///
    /// # Errors
    /// What the ledger says.
    pub async fn count(&self, order_no: &str) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar("SELECT count(*) FROM charges WHERE order_no = ?")
            .bind(order_no)
            .fetch_one(&self.ledger)
            .await
    }
}

/// The ledger has no unsigned integers; a fence is microseconds and fits for 290,000 years.
fn signed(fence: u64) -> i64 {
    i64::try_from(fence).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database;

    async fn charge(gateway: &Gateway, fence: u64) -> Result<Charge, ChargeError> {
        let request = ChargeRequest {
            order_no: "A-1".into(),
            amount_cents: 420,
            card: Card::Good,
            fence,
        };
        gateway.charge(request).await
    }

    #[tokio::test]
    async fn a_void_ends_what_came_before_it_and_nothing_else() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let gateway = Gateway::new(database::ledger(&folder.path().join("orders.sqlite")).await?);
        gateway.set_delay_ms(0);
        assert_eq!(gateway.void_before("A-1", 5).await?, None);
        assert_eq!(gateway.void_before("A-1", 3).await?, None);
        assert!(matches!(
            charge(&gateway, 4).await,
            Err(ChargeError::Voided)
        ));
        let first = charge(&gateway, 5).await?;
        assert_eq!(gateway.void_before("A-1", 9).await?, Some(first));
        Ok(())
    }

    #[tokio::test]
    async fn the_ledger_alone_keeps_nobody_from_paying_twice() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let gateway = Gateway::new(database::ledger(&folder.path().join("orders.sqlite")).await?);
        gateway.set_delay_ms(0);
        charge(&gateway, 1).await?;
        charge(&gateway, 1).await?;
        assert_eq!(gateway.count("A-1").await?, 2);
        Ok(())
    }
}
