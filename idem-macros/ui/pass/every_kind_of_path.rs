use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use idem_core::{Error, KeyPart, idempotent};

#[derive(KeyPart)]
struct OrderNo(String);

#[derive(KeyPart)]
struct Wrapped<T> {
    value: T,
}

#[derive(KeyPart)]
#[key_part(crate = idem_core)]
enum Channel {
    Web,
    #[allow(dead_code)]
    Shop,
}

struct Coupon {
    code: OrderNo,
}

struct Request {
    no: OrderNo,
    wrapped: Wrapped<u8>,
    channel: Channel,
    coupon: Option<Coupon>,
    lines: Vec<u32>,
    headers: HashMap<String, String>,
    sorted: BTreeMap<&'static str, u8>,
    json: serde_json::Value,
    pair: (u8, (u8, u8)),
    digest: [u8; 4],
    shared: Arc<str>,
    cow: Cow<'static, str>,
    maybe: Option<u8>,
}

impl Request {
    fn id(&self) -> String {
        "id".into()
    }
    fn coupon(&self) -> Option<&Coupon> {
        self.coupon.as_ref()
    }
}

#[idempotent(
    prefix = "everything",
    key = "{request.no}:{request.wrapped}:{request.channel}:{request.coupon?.code}:{request.lines[1]}\
           :{request.headers[\"x\"]}:{request.sorted[\"y\"]}:{request.pair.1.0}:{request.digest}:{request.shared}\
           :{request.cow}:{request.maybe}:{request.id()}:{request.coupon()?.code}:{request.pair}"
)]
async fn everything(request: Request) -> Result<u8, Error> {
    let _ = request.json;
    Ok(request.pair.0)
}

#[idempotent(prefix = "first", key = "lines[0]")]
async fn first(lines: &[u32]) -> Result<(), Error> {
    let _ = lines;
    Ok(())
}

#[idempotent(prefix = "tries", key = (request.coupon.as_ref()?.code, request.lines.first()?))]
async fn tries(request: &Request) -> Result<(), Error> {
    let _ = request;
    Ok(())
}

#[idempotent(prefix = "printed", key = "request.no", fingerprint = "request.lines, request.coupon?.code.0, request.headers[\"x\"]")]
async fn printed(request: &Request) -> Result<(), Error> {
    let _ = request;
    Ok(())
}

#[idempotent(prefix = "printed:expr", key = request.no, fingerprint = (request.lines, request.headers))]
async fn printed_expression(request: &Request) -> Result<(), Error> {
    let _ = request;
    Ok(())
}

#[idempotent(prefix = "missing:ok", key = "lines[5]", on_missing_key = "run")]
async fn without(lines: Vec<u32>) -> Result<(), Error> {
    let _ = lines;
    Ok(())
}

fn request() -> Request {
    Request {
        no: OrderNo("A".into()),
        wrapped: Wrapped { value: 1 },
        channel: Channel::Web,
        coupon: Some(Coupon { code: OrderNo("C".into()) }),
        lines: vec![1, 2],
        headers: HashMap::from([("x".into(), "h".into())]),
        sorted: BTreeMap::from([("y", 3)]),
        json: serde_json::json!({}),
        pair: (1, (2, 3)),
        digest: [1, 2, 3, 4],
        shared: "s".into(),
        cow: "c".into(),
        maybe: Some(1),
    }
}

fn names(error: Error, part: &str) {
    match error {
        Error::MissingKey { part: missing } => assert_eq!(missing, part),
        other => panic!("{other:?}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(everything(request()).await.unwrap(), 1);
    names(everything(Request { coupon: None, ..request() }).await.unwrap_err(), "request.coupon?.code");
    names(everything(Request { lines: vec![], ..request() }).await.unwrap_err(), "request.lines[1]");
    names(everything(Request { maybe: None, ..request() }).await.unwrap_err(), "request.maybe");
    first(&[1]).await.unwrap();
    names(first(&[]).await.unwrap_err(), "lines[0]");
    tries(&request()).await.unwrap();
    names(tries(&Request { coupon: None, ..request() }).await.unwrap_err(), "request.coupon.as_ref()?.code");
    printed(&request()).await.unwrap();
    printed_expression(&request()).await.unwrap();
    let _ = without(vec![]).await;
}
