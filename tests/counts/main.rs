//! What a call of an annotated function costs, in numbers that are exact: scripts run, bytes sent,
//! allocations made. The key takes 56 bytes and the result 200.

use allocation_counter::measure;
use idem_core::{Error, Idempotency, idempotent};
use idem_tests::redis::{RedisOptions, RedisServer};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

/// Calls in a row. What happens only now and then (a buffer grows, a queue gets a new block) is
/// shared among them.
const CALLS: u64 = 256;

struct Order {
    number: String,
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    text: String,
}

#[idempotent(prefix = "count:pay", key = "order.number", expire = 600, engine = engine)]
async fn pay(engine: &Idempotency, order: &Order) -> Result<Receipt, Error> {
    Ok(receipt())
}

#[idempotent(
    prefix = "count:one",
    key = "order.number",
    on_duplicate = "reject",
    expire = 600,
    engine = engine
)]
async fn pay_and_refuse_duplicates(engine: &Idempotency, order: &Order) -> Result<Receipt, Error> {
    Ok(receipt())
}

fn receipt() -> Receipt {
    let frame = r#"{"text":""}"#.len();
    Receipt {
        text: "x".repeat(200 - frame),
    }
}

/// A key of 56 bytes, with `idem:count:pay::` before it.
fn orders() -> Vec<Order> {
    let order = |number| Order {
        number: format!("{number:040}"),
    };
    (0..CALLS).map(order).collect()
}

/// An engine that has called before: connected, and every script known to the server.
struct Called {
    server: RedisServer,
    runtime: Runtime,
    engine: Idempotency,
}

impl Called {
    fn new() -> Self {
        let server = RedisServer::start(RedisOptions::new()).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let engine = runtime.block_on(async {
            let engine = Idempotency::redis(&server.url()).await.unwrap();
            let number = "warm up".into();
            pay(&engine, &Order { number }).await.unwrap();
            engine
        });
        Self {
            server,
            runtime,
            engine,
        }
    }

    fn pay_all(&self, orders: &[Order]) {
        self.runtime.block_on(async {
            for order in orders {
                pay(&self.engine, order).await.unwrap();
            }
        });
    }

    fn scripts(&self) -> u64 {
        self.server.calls("evalsha").unwrap()
    }

    fn received(&self) -> u64 {
        let text = self.server.info("total_net_input_bytes").unwrap();
        text.trim().parse().unwrap()
    }
}

#[test]
fn a_first_call_is_two_scripts_and_a_duplicate_and_a_refused_call_are_one() {
    let called = Called::new();
    let orders = orders();

    let before = called.scripts();
    called.pay_all(&orders);
    assert_eq!(called.scripts() - before, 2 * CALLS);

    let before = called.scripts();
    called.pay_all(&orders);
    assert_eq!(called.scripts() - before, CALLS);

    called.runtime.block_on(async {
        let engine = &called.engine;
        let order = &orders[0];
        pay_and_refuse_duplicates(engine, order).await.unwrap();
        let before = called.scripts();
        let refused = pay_and_refuse_duplicates(engine, order).await;
        assert!(matches!(refused, Err(Error::Duplicate { .. })));
        assert_eq!(called.scripts() - before, 1);
    });
}

#[test]
fn a_first_call_sends_at_most_600_bytes_and_a_duplicate_200() {
    let called = Called::new();
    let orders = orders();
    for limit in [600, 200] {
        let before = called.received();
        called.pay_all(&orders);
        // Asking for the number is itself received, but is less than a byte for each call.
        let sent = (called.received() - before) / CALLS;
        assert!(sent <= limit, "{sent} bytes, not {limit}");
    }
}

#[test]
fn a_first_call_allocates_at_most_30_times_and_a_duplicate_16_times() {
    let called = Called::new();
    let orders = orders();
    for limit in [30, 16] {
        let counted = measure(|| called.pay_all(&orders)).count_total;
        let each = counted.div_ceil(CALLS);
        assert!(each <= limit, "{each} allocations, not {limit}");
    }
}
