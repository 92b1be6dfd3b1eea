//! What every scene needs.

use sqlx::SqlitePool;

use crate::gateway::Gateway;
use crate::orders::Orders;

/// The orders and the way to their payment. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shop {
    /// The table of orders.
    pub orders: Orders,
    /// The payment provider.
    pub gateway: Gateway,
}

impl Shop {
    /// The shop in this database.
    #[must_use]
    pub fn new(pool: SqlitePool) -> Self {
        Self {
            orders: Orders::new(pool.clone()),
            gateway: Gateway::new(pool),
        }
    }
}
