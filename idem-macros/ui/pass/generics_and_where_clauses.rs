//! M02, M03
use idem_core::{Error, KeyPart, idempotent};

trait HasOrder {
    fn order(&self) -> u64;
}

struct Request(u64);

impl HasOrder for Request {
    fn order(&self) -> u64 {
        self.0
    }
}

trait Db {
    const NAME: &'static str;
}
struct One;
struct Two;
impl Db for One {
    const NAME: &'static str = "one";
}
impl Db for Two {
    const NAME: &'static str = "two";
}

#[idempotent(prefix = "bounded", key = request.order())]
async fn bounded<T>(request: T) -> Result<u64, Error>
where
    T: HasOrder + Send,
{
    Ok(request.order())
}

#[idempotent(prefix = "over_two_types", key = "request.0")]
async fn over_two_types<D: Db>(_db: &D, request: Request) -> Result<String, Error> {
    Ok(format!("{} {}", D::NAME, request.0))
}

#[idempotent(prefix = "of_any_key", key = "id")]
async fn of_any_key<K: KeyPart, const N: usize>(id: K, bytes: [u8; N]) -> Result<usize, Error> {
    let _ = &id;
    Ok(bytes.len())
}

#[idempotent(prefix = "opaque", key = "id.order()")]
async fn opaque(id: impl HasOrder, name: impl Into<String>) -> Result<String, Error> {
    Ok(format!("{}{}", name.into(), id.order()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(bounded(Request(1)).await.unwrap(), 1);
    assert_eq!(over_two_types(&One, Request(1)).await.unwrap(), "one 1");
    assert_eq!(over_two_types(&Two, Request(2)).await.unwrap(), "two 2");
    assert_eq!(of_any_key(7_u8, [0; 3]).await.unwrap(), 3);
    assert_eq!(opaque(Request(1), "x").await.unwrap(), "x1");
}
