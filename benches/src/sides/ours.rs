//! The attribute, as a service writes it.

use std::hint::black_box;

use anyhow::Result;
use idem_core::{Error, Idempotency, idempotent};

use super::Side;
use crate::order::{Order, Receipt, receipt};

#[idempotent(prefix = "bench:pay", key = "order.number", expire = 600, engine = engine)]
async fn pay(engine: &Idempotency, order: &Order) -> Result<Receipt, Error> {
    Ok(receipt(order))
}

#[idempotent(
    prefix = "bench:fpt",
    key = "order.number",
    fingerprint = "order",
    expire = 600,
    engine = engine
)]
async fn pay_with_fingerprint(engine: &Idempotency, order: &Order) -> Result<Receipt, Error> {
    Ok(receipt(order))
}

pub(crate) struct Ours(Idempotency);

impl Side for Ours {
    async fn connect(url: &str) -> Result<Self> {
        Ok(Self(Idempotency::redis(url).await?))
    }

    async fn pay(&self, order: Order) -> Result<()> {
        black_box(pay(&self.0, &order).await?);
        Ok(())
    }
}

pub(crate) struct OursWithFingerprint(Idempotency);

impl Side for OursWithFingerprint {
    async fn connect(url: &str) -> Result<Self> {
        Ok(Self(Idempotency::redis(url).await?))
    }

    async fn pay(&self, order: Order) -> Result<()> {
        black_box(pay_with_fingerprint(&self.0, &order).await?);
        Ok(())
    }
}
