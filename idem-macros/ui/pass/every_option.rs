use std::time::Duration;

use idem_core::{Error, Idempotency, OnError, Recovered, idempotent};

mod prelude {
    pub(crate) use idem_core as runtime;
}

const RETENTION: Duration = Duration::from_secs(600);

struct Gateway;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Failed(String);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

fn classify(_: &Failed) -> OnError {
    OnError::Abandon
}

async fn lookup(_: &Gateway, _: &str) -> Result<Recovered<u32>, Failed> {
    Ok(Recovered::Done(7))
}

async fn lookup_by_arguments(_: &Gateway, _: &String) -> Result<Recovered<u32>, std::fmt::Error> {
    Ok(Recovered::NotDone)
}

#[idempotent(
    prefix = "all",
    key = "order_no",
    expire = RETENTION,
    lease = "30s",
    on_duplicate = "replay",
    in_progress = "wait",
    wait = "5s",
    on_error = classify,
    replay_errors = true,
    on_abandoned = "rerun",
    checkpoint = true,
    recover = lookup(&gateway, &order_no),
    fingerprint = "order_no",
    forget = false,
    message = "This order is being paid.",
    engine = Idempotency::memory(),
    on_store_error = "run",
    on_missing_key = "run",
    detach = false,
    crate = prelude::runtime,
)]
async fn all(gateway: Gateway, order_no: String) -> Result<u32, Failed> {
    let _ = (gateway, order_no);
    Ok(1)
}

#[idempotent(prefix = "by:path", key = order_no, recover = lookup_by_arguments)]
async fn by_path(gateway: Gateway, order_no: String) -> Result<u32, Failed> {
    let _ = (gateway, order_no);
    Ok(1)
}

#[idempotent(prefix = "forgets", key = order_no, forget = true, detach = true)]
async fn forgets(order_no: String, _permit: Gateway) -> Result<NotStored, Failed> {
    let _ = order_no;
    Ok(NotStored)
}

#[idempotent(prefix = "sticky", key = order_no, on_error = "replay", replay_errors = true, expire = 86400, lease = 1, wait = "500ms")]
async fn sticky(order_no: String) -> Result<(), Failed> {
    Err(Failed(order_no))
}

struct NotStored;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    Idempotency::memory().install().unwrap();
    assert_eq!(all(Gateway, "A".into()).await.unwrap(), 1);
    assert_eq!(by_path(Gateway, "A".into()).await.unwrap(), 1);
    forgets("A".into(), Gateway).await.unwrap();
    assert_eq!(sticky("A".into()).await.unwrap_err().0, "A");
}
