//! M08, M14
#![deny(warnings, missing_docs, unreachable_pub)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery, clippy::implicit_return)]
#![allow(clippy::needless_return, reason = "clippy::implicit_return asks for it")]

use idem_core::{Error, idempotent};

/// Documented.
///
/// # Errors
/// Never.
#[idempotent(prefix = "documented", key = "id")]
pub async fn documented(id: u32) -> Result<u32, Error> {
    return Ok(id);
}

#[idempotent(prefix = "allowed", key = "id")]
#[allow(unused_variables)]
async fn allowed(id: u32) -> Result<(), Error> {
    let unused = 1;
    return Ok(());
}

#[idempotent(prefix = "expected", key = "id")]
#[expect(unused_variables)]
async fn expected(id: u32) -> Result<(), Error> {
    let unused = 1;
    return Ok(());
}

#[idempotent(prefix = "inner", key = "id")]
async fn inner(id: u32) -> Result<(), Error> {
    #![allow(unused_variables)]
    let unused = 1;
    return Ok(());
}

#[idempotent(prefix = "single", key = "{id}-{other?}", recover = lookup)]
async fn single(id: u32, other: Option<u32>) -> Result<(), Error> {
    return Err(Error::NotInstalled);
}

async fn lookup(_: &u32, _: &Option<u32>) -> Result<idem_core::Recovered<()>, Error> {
    return std::future::ready(Ok(idem_core::Recovered::NotDone)).await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(documented(1).await.unwrap(), 1);
    allowed(1).await.unwrap();
    expected(1).await.unwrap();
    inner(1).await.unwrap();
    assert!(single(1, Some(2)).await.is_err());
}
