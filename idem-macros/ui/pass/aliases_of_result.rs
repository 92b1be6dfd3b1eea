//! M15
use idem_core::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt(u32);

type Answer<T> = Result<T, Error>;
type Done = Result<(), Error>;

#[idempotent(prefix = "anyhow", key = "id")]
async fn with_anyhow(id: u32) -> anyhow::Result<Receipt> {
    let id = id.to_string().parse()?;
    Ok(Receipt(id))
}

#[idempotent(prefix = "alias", key = "id")]
async fn with_alias(id: u32) -> Answer<Receipt> {
    Ok(Receipt(id))
}

#[idempotent(prefix = "done", key = "id", on_error = classify)]
async fn with_nothing(id: u32) -> Done {
    let _ = id;
    Ok(())
}

fn classify(_: &Error) -> idem_core::OnError {
    idem_core::OnError::Release
}

#[idempotent(prefix = "std", key = "id")]
async fn with_std(id: u32) -> std::result::Result<Receipt, Error> {
    Ok(Receipt(id))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(with_anyhow(1).await.unwrap(), Receipt(1));
    assert_eq!(with_alias(1).await.unwrap(), Receipt(1));
    assert_eq!(with_std(1).await.unwrap(), Receipt(1));
    with_nothing(1).await.unwrap();
}
