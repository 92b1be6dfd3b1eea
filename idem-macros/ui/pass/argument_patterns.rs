//! M19
use idem_core::{Error, idempotent};

struct Json<T>(T);
struct State<T>(T);

struct Request {
    order_no: String,
    user: User,
}

struct User {
    id: u64,
}

#[idempotent(prefix = "extractors", key = "{request.user.id}:{request.order_no}")]
async fn extractors(State(shop): State<u8>, Json(request): Json<Request>) -> Result<String, Error> {
    Ok(format!("{shop}{}", request.order_no))
}

#[idempotent(prefix = "mutable", key = "request.order_no")]
async fn mutable(mut request: Request) -> Result<String, Error> {
    request.order_no.push('x');
    Ok(request.order_no)
}

#[idempotent(prefix = "ignored", key = "id")]
async fn ignored(_: Request, id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(prefix = "tuple", key = "{a}:{b}")]
async fn tuple((a, b): (u8, u8)) -> Result<u8, Error> {
    Ok(a + b)
}

#[idempotent(prefix = "fields", key = (order_no, id))]
async fn fields(Request { order_no, user: User { id } }: Request) -> Result<u64, Error> {
    let _ = order_no;
    Ok(id)
}

#[idempotent(prefix = "raw", key = "{r#type}:{kind.match}")]
async fn raw(r#type: u8, kind: Kind) -> Result<u8, Error> {
    let _ = kind.r#match;
    Ok(r#type)
}

struct Kind {
    r#match: bool,
}

fn request() -> Request {
    Request { order_no: "A".into(), user: User { id: 7 } }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(extractors(State(1), Json(request())).await.unwrap(), "1A");
    assert_eq!(mutable(request()).await.unwrap(), "Ax");
    assert_eq!(ignored(request(), 2).await.unwrap(), 2);
    assert_eq!(tuple((1, 2)).await.unwrap(), 3);
    assert_eq!(fields(request()).await.unwrap(), 7);
    assert_eq!(raw(1, Kind { r#match: true }).await.unwrap(), 1);
}
