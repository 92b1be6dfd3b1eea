//! Names of the user's never meet ours; an annotated function may call another (K07).
use idem_core::{Error, idempotent};

#[allow(non_camel_case_types, dead_code)]
mod core {}

#[allow(dead_code)]
struct Option;
#[allow(dead_code)]
struct Box;

#[idempotent(prefix = "outer", key = "__idem_key")]
async fn outer(__idem_key: u32, __idem_call: u32) -> Result<u32, Error> {
    let __idem_run = inner(__idem_key).await?;
    Ok(__idem_run + __idem_call)
}

#[idempotent(prefix = "inner", key = "id")]
async fn inner(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(outer(1, 2).await.unwrap(), 3);
}
