//! `detach = true`: a caller who goes away does not stop the body.

use std::time::Duration;

use idem_core::record::Status;
use idem_core::{Attempt, Error, Idempotency, Key, Outcome, idempotent, observe};
use idem_tests::body::dropped_after;
use tracing::{Instrument, Metadata, Span};

use crate::shop::{Request, with_engine};

#[idempotent(prefix = "detached", key = "request.order_no", detach = true)]
async fn detached(request: Request) -> Result<u32, Error> {
    let number = request.body().await;
    assert_ne!(request.order_no, "bad", "the payload");
    assert_eq!(Attempt::current().unwrap().number(), 1);
    Ok(number)
}

fn key() -> Key {
    Key::new("detached", "A").unwrap()
}

// X01
#[tokio::test]
async fn a_caller_that_leaves_does_not_stop_the_body() {
    with_engine(async |idem| {
        let (request, held) = Request::held("A");
        let mut call = Box::pin(detached(request.clone()));
        assert!(dropped_after(1, call.as_mut()).await.is_none());
        held.entered().await;
        drop(call);
        held.release();
        assert_eq!(idem.drain(Duration::MAX).await, 0);
        let record = idem.peek(&key()).await.unwrap().unwrap();
        assert_eq!(record.status, Status::Success);
        assert_eq!(detached(request.clone()).await.unwrap(), 1);
        assert_eq!(request.bodies.count(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_caller_that_stays_hears_the_result_and_how_it_came() {
    with_engine(async |_| {
        let request = Request::new("A");
        for expected in [Outcome::Executed, Outcome::Replayed] {
            let (result, outcome) = observe(detached(request.clone())).await;
            assert_eq!(result.unwrap(), 1);
            assert_eq!(outcome, expected);
        }
    })
    .await;
}

// X04
#[tokio::test]
async fn a_panic_in_the_task_reaches_the_caller() {
    let idem = Idempotency::memory();
    let engine = idem.clone();
    let call = async move { engine.scope(detached(Request::new("bad"))).await };
    let payload = tokio::spawn(call).await.unwrap_err().into_panic();
    let text = payload.downcast_ref::<String>().unwrap();
    assert!(text.contains("the payload"), "{text}");
    let refused = idem.scope(detached(Request::new("bad"))).await;
    assert!(
        matches!(refused, Err(Error::OutcomeUnknown { .. })),
        "{refused:?}"
    );
}

#[idempotent(prefix = "detached:inner", key = "request.order_no")]
async fn inner(request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

#[idempotent(prefix = "detached:outer", key = "request.order_no", detach = true)]
async fn outer(request: Request) -> Result<u32, Error> {
    inner(&request).await
}

/// The task is the library's own affair; the scope around the call is the user's.
#[tokio::test]
async fn calls_inside_a_detached_body_find_the_engine_of_the_scope() {
    with_engine(async |idem| {
        assert_eq!(outer(Request::new("A")).await.unwrap(), 1);
        let records = idem.records("detached:inner").await.unwrap();
        assert_eq!(records.len(), 1);
    })
    .await;
}

/// Its record is granted, and its task goes down with the runtime before anybody polled it.
#[test]
fn a_body_that_was_never_begun_leaves_a_free_key() {
    let idem = Idempotency::memory();
    let request = Request::new("A");
    let runtimes = [(); 2].map(|()| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    });
    let [first, second] = runtimes;
    let mut call = Box::pin(idem.scope(detached(request.clone())));
    assert!(first.block_on(dropped_after(1, call.as_mut())).is_none());
    let granted = second.block_on(idem.peek(&key())).unwrap().unwrap();
    assert!(!granted.running.unwrap().is_abandoned);
    drop(first);
    drop(call);

    second.block_on(idem.drain(Duration::MAX));
    assert_eq!(second.block_on(idem.peek(&key())).unwrap(), None);
    assert_eq!(request.bodies.count(), 0);
    let again = second.block_on(idem.scope(detached(request)));
    assert_eq!(again.unwrap(), 1);
}

// X03
#[test]
fn a_runtime_that_ends_takes_the_body_with_it_and_the_record_says_so() {
    let idem = Idempotency::memory();
    let (request, held) = Request::held("A");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let engine = idem.clone();
    runtime.spawn(async move { engine.scope(detached(request)).await });
    runtime.block_on(held.entered());
    drop(runtime);

    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(idem.drain(Duration::MAX));
    let record = runtime.block_on(idem.peek(&key())).unwrap().unwrap();
    assert!(record.running.unwrap().is_abandoned);
}

#[idempotent(prefix = "detached:span", key = "order_no", detach = true)]
async fn names_its_span(order_no: String) -> Result<Option<String>, Error> {
    let span = Span::current().metadata().map(Metadata::name);
    Ok(span.map(|span| format!("{span} {order_no}")))
}

/// A request's lines have its id, also those of the body.
#[tokio::test]
async fn the_body_runs_in_its_callers_span() {
    with_engine(async |_| {
        let subscriber = tracing_subscriber::fmt()
            .with_writer(std::io::sink)
            .finish();
        let _subscriber = tracing::subscriber::set_default(subscriber);
        let call = names_its_span("A".to_owned());
        let named = call.instrument(tracing::error_span!("request")).await;
        assert_eq!(named.unwrap().as_deref(), Some("request A"));
    })
    .await;
}
