//! An annotated function raises no lint that the plain one would not, and hides none. The lints
//! are denied here, so that compiling this suite, with clippy too, is the test.

// M08, M14
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]
#![deny(clippy::implicit_return)]
#![allow(
    clippy::needless_return,
    reason = "clippy::implicit_return asks for the opposite"
)]

use std::sync::Arc;

use async_trait::async_trait;
use idem_core::{Error, Idempotency, KeyPart, OnError, Recovered, idempotent, locked};

/// A documented newtype.
#[derive(Debug, KeyPart)]
pub struct OrderNo(String);

/// A documented enum.
#[derive(Clone, Copy, Debug, KeyPart)]
pub enum Channel {
    /// Documented.
    Web,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    order_no: OrderNo,
    coupon: Option<OrderNo>,
    lines: Vec<u32>,
}

/// Documented.
///
/// # Errors
/// When refused.
#[idempotent(prefix = "lints:documented", key = "{request.order_no}-{channel}")]
pub async fn documented(request: Request, channel: Channel) -> Result<usize, Error> {
    let Channel::Web = channel;
    return Ok(request.lines.len());
}

#[idempotent(prefix = "lints:token", token = "token?", subject = (request.order_no, channel))]
async fn token(request: &Request, channel: Channel, token: Option<&str>) -> Result<usize, Error> {
    let Channel::Web = channel;
    return Ok(request.lines.len());
}

/// Documented.
///
/// # Errors
/// When refused.
#[locked(
    prefix = "lints:locked",
    key = "{request.order_no}-{channel}",
    lease = "10s"
)]
pub async fn locked_up(request: Request, channel: Channel) -> Result<usize, Error> {
    let Channel::Web = channel;
    return Ok(request.lines.len());
}

#[locked(prefix = "lints:locked:idle", key = "id")]
async fn locked_idle(id: u32, mut idle: u32, _permit: Arc<()>) -> Result<u32, Error> {
    idle += 1;
    return Ok(idle);
}

#[idempotent(prefix = "lints:single", key = "id")]
async fn single_expression(id: u32) -> Result<u32, Error> {
    return Ok(id);
}

#[idempotent(
    prefix = "lints:unit",
    key = "request.lines[0]",
    on_missing_key = "run"
)]
async fn unit_value(request: &Request) -> Result<(), Error> {
    assert!(request.coupon.is_none());
    return Ok(());
}

#[idempotent(
    prefix = "lints:options",
    key = "{request.order_no}:{request.coupon?}",
    fingerprint = "request.lines, request.coupon?.0, request.lines[0]",
    on_error = classify,
    recover = lookup,
    expire = "10m",
    wait = 1
)]
async fn every_kind_of_option(request: &Request, _idle: u8) -> Result<u32, Error> {
    if request.lines.is_empty() {
        return Err(Error::NotInstalled);
    }
    return Ok(1);
}

const fn classify(_: &Error) -> OnError {
    return OnError::Fail;
}

async fn lookup(_: &Request, _: &u8) -> Result<Recovered<u32>, Error> {
    return std::future::ready(Ok(Recovered::NotDone)).await;
}

#[idempotent(prefix = "lints:allowed", key = "id")]
#[allow(unused_variables)]
async fn allowed(id: u32) -> Result<(), Error> {
    let unused = 1;
    return Ok(());
}

#[idempotent(prefix = "lints:expected", key = "id")]
#[expect(unused_variables, reason = "an expectation reaches the body")]
async fn expected(id: u32) -> Result<(), Error> {
    let unused = 1;
    return Ok(());
}

#[idempotent(prefix = "lints:inner", key = "id")]
async fn inner_attribute(id: u32) -> Result<(), Error> {
    #![allow(unused_variables)]
    let unused = 1;
    return Ok(());
}

#[idempotent(prefix = "lints:dead", key = "id")]
#[expect(dead_code, reason = "an unused function is still said to be unused")]
async fn dead(id: u32) -> Result<u32, Error> {
    return Ok(id);
}

#[idempotent(prefix = "lints:mut", key = "id")]
#[expect(unused_mut, reason = "an idle `mut` is still said to be idle")]
async fn idle_mut(mut id: u32) -> Result<u32, Error> {
    return Ok(id);
}

#[idempotent(prefix = "lints:unreachable", key = "id")]
#[expect(unreachable_code, reason = "dead statements are still said to be dead")]
async fn unreachable_statement(id: u32) -> Result<u32, Error> {
    return Ok(id);
    assert_eq!(id, 1);
}

#[idempotent(prefix = "lints:argument", key = "id")]
#[expect(unused_variables, reason = "an idle argument is still said to be idle")]
async fn idle_argument(id: u32, idle: u32) -> Result<u32, Error> {
    return Ok(id);
}

#[idempotent(prefix = "lints:detached", key = "id", detach = true)]
async fn detached(id: u32, _permit: Arc<()>) -> Result<u32, Error> {
    return Ok(id);
}

#[idempotent(prefix = "lints:items", key = "id")]
async fn items_first(id: u32) -> Result<u32, Error> {
    use std::cmp::max;
    const LEAST: u32 = 1;
    return Ok(max(id, LEAST));
}

#[idempotent(prefix = "lints:field", key = "request.order_no")]
async fn overwritten_field(mut request: Request) -> Result<usize, Error> {
    request.lines = Vec::new();
    return Ok(request.lines.len());
}

#[async_trait]
trait Pays {
    async fn pay(&self, request: Request) -> Result<usize, Error>;
}

struct Shop {
    tenant: String,
}

#[async_trait]
impl Pays for Shop {
    #[idempotent(prefix = "lints:pay", key = (self.tenant, request.order_no))]
    async fn pay(&self, request: Request) -> Result<usize, Error> {
        return Ok(self.tenant.len() + request.lines.len());
    }
}

fn request() -> Request {
    return Request {
        order_no: OrderNo("A".into()),
        coupon: None,
        lines: vec![1],
    };
}

#[tokio::test]
async fn annotated_functions_run_under_every_lint() {
    let engine = Idempotency::memory();
    engine.scope(run_each()).await.expect("each runs");
}

async fn run_each() -> Result<(), Error> {
    assert_eq!(documented(request(), Channel::Web).await?, 1);
    assert_eq!(locked_up(request(), Channel::Web).await?, 1);
    assert_eq!(locked_idle(1, 2, Arc::new(())).await?, 3);
    assert_eq!(single_expression(1).await?, 1);
    let rejected = token(&request(), Channel::Web, None).await;
    assert!(matches!(rejected, Err(Error::TokenRejected { .. })));
    unit_value(&request()).await?;
    let missing = every_kind_of_option(&request(), 0).await;
    assert!(matches!(missing, Err(Error::MissingKey { .. })));
    allowed(1).await?;
    expected(1).await?;
    inner_attribute(1).await?;
    assert_eq!(idle_mut(1).await?, 1);
    assert_eq!(unreachable_statement(1).await?, 1);
    assert_eq!(idle_argument(1, 2).await?, 1);
    assert_eq!(detached(1, Arc::new(())).await?, 1);
    assert_eq!(items_first(1).await?, 1);
    assert_eq!(overwritten_field(request()).await?, 0);
    let shop = Shop { tenant: "T".into() };
    assert_eq!(shop.pay(request()).await?, 2);
    return Ok(());
}
