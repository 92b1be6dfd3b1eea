//! The business of the benchmark: an order is paid, and the receipt takes 200 bytes as JSON.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// How many bytes a receipt takes as JSON.
pub(crate) const RECEIPT_BYTES: usize = 200;

/// Fills the record's key up to 56 bytes behind `idem:bench:pay::`.
const ORDER_NO_BYTES: usize = 40;

static PAID: AtomicU64 = AtomicU64::new(0);

/// What a caller asks for.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Order {
    pub(crate) number: String,
    pub(crate) amount: u64,
    pub(crate) currency: &'static str,
}

/// What it gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Receipt {
    amount: u64,
    number: String,
    text: String,
}

impl Order {
    /// The order with this number.
    pub(crate) fn numbered(number: u64) -> Self {
        Self {
            number: format!("{number:0ORDER_NO_BYTES$}"),
            amount: 4_200,
            currency: "EUR",
        }
    }
}

/// The body that is guarded: it does nothing but count.
pub(crate) fn receipt(order: &Order) -> Receipt {
    PAID.fetch_add(1, Ordering::Relaxed);
    let fixed = r#"{"amount":4200,"number":"","text":""}"#.len();
    let text = RECEIPT_BYTES - fixed - ORDER_NO_BYTES;
    black_box(Receipt {
        amount: order.amount,
        number: order.number.clone(),
        text: "x".repeat(text),
    })
}

/// How often a body has run.
pub(crate) fn paid() -> u64 {
    PAID.load(Ordering::Relaxed)
}
