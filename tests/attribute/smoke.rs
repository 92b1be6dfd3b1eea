use idem_core::{Error, Idempotency, idempotent};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone)]
struct PayRequest {
    order_no: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u32,
}

static RUNS: AtomicU32 = AtomicU32::new(0);

#[idempotent(prefix = "order:pay", key = "request.order_no", expire = 600)]
async fn pay(request: PayRequest) -> Result<Receipt, Error> {
    assert_eq!(request.order_no, "A-1");
    Ok(Receipt {
        number: RUNS.fetch_add(1, Ordering::SeqCst),
    })
}

#[tokio::test]
async fn a_second_call_gets_the_first_answer() {
    let idem = Idempotency::memory();
    idem.scope(async {
        let request = PayRequest {
            order_no: "A-1".into(),
        };
        assert_eq!(pay(request.clone()).await.unwrap(), Receipt { number: 0 });
        assert_eq!(pay(request).await.unwrap(), Receipt { number: 0 });
    })
    .await;
}
