//! What every scene needs.

use sqlx::{Pool, SqlitePool};

use crate::database::Dialect;
use crate::gateway::Gateway;

/// The shop's database and the way to its payments. Cheap to clone.
#[derive(Debug)]
pub struct Shop<DB: Dialect> {
    /// Orders, stock, payments.
    pub pool: Pool<DB>,
    /// The payment provider.
    pub gateway: Gateway,
}

impl<DB: Dialect> Shop<DB> {
    /// The shop in this database, with the provider's ledger in that file.
    #[must_use]
    pub fn new(pool: Pool<DB>, ledger: SqlitePool) -> Self {
        Self {
            pool,
            gateway: Gateway::new(ledger),
        }
    }
}

impl<DB: Dialect> Clone for Shop<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            gateway: self.gateway.clone(),
        }
    }
}
