//! Each option does what it says.

use std::time::Duration;

use idem_core::{
    Attempt, Error, Idempotency, Key, MemoryStore, Outcome, Policy, StoreErrorKind, idempotent,
    observe,
};
use idem_tests::faulty::{Fault, Verb};

use crate::shop::{Request, faulty, with_engine};

fn key(prefix: &str) -> Key {
    Key::new(prefix, "A").unwrap()
}

#[idempotent(prefix = "forget", key = "request.order_no", forget = true)]
async fn forgets(request: &Request) -> Result<NotStored, Error> {
    Ok(NotStored(request.body().await))
}

#[derive(Debug)]
struct NotStored(u32);

#[tokio::test]
async fn forget_leaves_nothing_behind() {
    with_engine(async |idem| {
        let request = Request::new("A");
        for number in 1..=2 {
            assert_eq!(forgets(&request).await.unwrap().0, number);
            assert_eq!(idem.peek(&key("forget")).await.unwrap(), None);
        }
    })
    .await;
}

#[idempotent(
    prefix = "reject",
    key = "request.order_no",
    on_duplicate = "reject",
    message = "Paid already."
)]
async fn rejects(request: &Request) -> Result<NotStored, Error> {
    Ok(NotStored(request.body().await))
}

#[tokio::test]
async fn reject_refuses_a_duplicate_with_the_functions_own_message() {
    with_engine(async |idem| {
        let request = Request::new("A");
        rejects(&request).await.unwrap();
        let refused = rejects(&request).await.unwrap_err();
        assert_eq!(refused.code(), "duplicate");
        assert_eq!(refused.message(), "Paid already.");
        let record = idem.peek(&key("reject")).await.unwrap().unwrap();
        assert_eq!(record.payload, None);
        assert_eq!(request.bodies.count(), 1);
    })
    .await;
}

#[idempotent(
    prefix = "waits",
    key = "request.order_no",
    in_progress = "wait",
    wait = "5s"
)]
async fn waits(request: Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

#[idempotent(prefix = "waits:little", key = "request.order_no", wait = "100ms")]
async fn waits_a_little(request: Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

// C06
#[tokio::test]
async fn wait_gives_the_first_ones_result_or_says_that_it_took_too_long() {
    let idem = Idempotency::memory();
    let (request, held) = Request::held("A");
    let spawn = |request: Request| {
        let idem = idem.clone();
        tokio::spawn(async move { idem.scope(observe(waits(request))).await })
    };
    let first = spawn(request.clone());
    held.entered().await;
    let second = spawn(request.clone());
    tokio::task::yield_now().await;
    held.release();
    assert_eq!(first.await.unwrap().0.unwrap(), 1);
    let (result, outcome) = second.await.unwrap();
    assert_eq!(result.unwrap(), 1);
    assert!(matches!(outcome, Outcome::Waited | Outcome::Replayed));
    assert_eq!(request.bodies.count(), 1);

    let (request, held) = Request::held("A");
    let running = {
        let (idem, request) = (idem.clone(), request.clone());
        tokio::spawn(async move { idem.scope(waits_a_little(request)).await })
    };
    held.entered().await;
    let refused = idem.scope(waits_a_little(request)).await;
    assert!(
        matches!(refused, Err(Error::InProgress { .. })),
        "{refused:?}"
    );
    held.release();
    assert_eq!(running.await.unwrap().unwrap(), 1);
}

#[idempotent(prefix = "checkpoint", key = "request.order_no", checkpoint = true)]
async fn marks(request: &Request, marks: bool) -> Result<u32, Error> {
    let number = request.bodies.add();
    if number > 1 {
        return Ok(number);
    }
    if marks {
        Attempt::current().unwrap().checkpoint().await?;
    }
    std::future::pending().await
}

// E02, E06
#[tokio::test]
async fn before_its_checkpoint_a_dropped_call_is_run_again_and_after_it_held() {
    for passes in [false, true] {
        with_engine(async |idem| {
            let request = Request::new("A");
            let mut call = Box::pin(marks(&request, passes));
            let polled = idem_tests::body::dropped_after(1, call.as_mut()).await;
            assert!(polled.is_none());
            let running = idem
                .peek(&key("checkpoint"))
                .await
                .unwrap()
                .unwrap()
                .running;
            assert_eq!(running.unwrap().checkpoint, passes);
            drop(call);
            idem.drain(Duration::MAX).await;
            let second = marks(&request, passes).await;
            if passes {
                assert!(
                    matches!(second, Err(Error::OutcomeUnknown { .. })),
                    "{second:?}"
                );
            } else {
                assert_eq!(second.unwrap(), 2);
            }
        })
        .await;
    }
}

#[idempotent(prefix = "rerun", key = "request.order_no", on_abandoned = "rerun")]
async fn reruns(request: &Request) -> Result<u32, Error> {
    let number = request.bodies.add();
    if number == 1 {
        std::future::pending::<()>().await;
    }
    Ok(number)
}

// E01
#[tokio::test]
async fn rerun_runs_a_dropped_call_again() {
    with_engine(async |idem| {
        let request = Request::new("A");
        let mut call = Box::pin(reruns(&request));
        assert!(
            idem_tests::body::dropped_after(1, call.as_mut())
                .await
                .is_none()
        );
        drop(call);
        idem.drain(Duration::MAX).await;
        assert_eq!(reruns(&request).await.unwrap(), 2);
    })
    .await;
}

#[idempotent(
    prefix = "payload",
    key = "request.order_no",
    fingerprint = "request.amount, request.coupon?"
)]
async fn fingerprinted(request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

// S11
#[tokio::test]
async fn one_key_with_two_payloads_is_refused() {
    with_engine(async |_| {
        let request = Request::new("A");
        fingerprinted(&request).await.unwrap();
        let dearer = Request {
            amount: 1,
            ..request.clone()
        };
        let cheaper = Request {
            coupon: Some("half".into()),
            ..request.clone()
        };
        for other in [dearer, cheaper] {
            let refused = fingerprinted(&other).await;
            assert!(
                matches!(refused, Err(Error::Mismatch { .. })),
                "{refused:?}"
            );
        }
        assert_eq!(fingerprinted(&request).await.unwrap(), 1);
    })
    .await;
}

#[idempotent(prefix = "engines:words", key = "request.order_no")]
async fn says_nothing(request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

#[idempotent(
    prefix = "own:words",
    key = "request.order_no",
    on_duplicate = "replay",
    message = "Its own."
)]
async fn says_its_own(request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

#[test]
fn what_belongs_to_a_function_is_no_default_of_an_engine() {
    for defaults in [
        Policy::new().forget(),
        Policy::new().own_checkpoint(),
        Policy::new().with_recover(),
    ] {
        let built = Idempotency::builder(MemoryStore::new())
            .defaults(defaults)
            .build();
        assert_eq!(built.unwrap_err().code(), "invalid_policy", "{defaults:?}");
    }
}

#[tokio::test]
async fn what_a_function_does_not_say_its_engine_says() {
    let defaults = Policy::new()
        .reject_duplicates()
        .message("The engine's.")
        .expire(SHORT);
    let builder = Idempotency::builder(MemoryStore::new()).defaults(defaults);
    let idem = builder.build().unwrap();
    idem.scope(async {
        let request = Request::new("A");
        says_nothing(&request).await.unwrap();
        let refused = says_nothing(&request).await.unwrap_err();
        assert_eq!(refused.code(), "duplicate");
        assert_eq!(refused.message(), "The engine's.");
        let record = idem.peek(&key("engines:words")).await.unwrap().unwrap();
        assert!(record.expires_in <= SHORT + Duration::from_millis(1));

        let request = Request::new("A");
        for _ in 0..2 {
            assert_eq!(says_its_own(&request).await.unwrap(), 1);
        }
        let keyless = says_its_own(&Request::new("")).await.unwrap_err();
        assert_eq!(keyless.code(), "missing_key");
    })
    .await;
}

const SHORT: Duration = Duration::from_secs(90);

#[idempotent(prefix = "times", key = "request.order_no", expire = SHORT, lease = "10s")]
async fn timed(request: Request, engine: Idempotency) -> Result<u32, Error> {
    let record = engine.peek(&key("times")).await?.unwrap();
    let left = record.running.unwrap().lease_left;
    assert!(
        left > Duration::from_secs(9) && left <= Duration::from_secs(10),
        "{left:?}"
    );
    Ok(request.body().await)
}

// E03, E14
#[tokio::test]
async fn times_are_what_was_written() {
    with_engine(async |idem| {
        timed(Request::new("A"), idem.clone()).await.unwrap();
        let left = idem.peek(&key("times")).await.unwrap().unwrap().expires_in;
        // Stores expire in whole milliseconds, rounded up.
        let longest = SHORT + Duration::from_millis(1);
        assert!(left > SHORT / 2 && left <= longest, "{left:?}");
    })
    .await;
}

struct App {
    engine: Idempotency,
}

impl AsRef<Idempotency> for App {
    fn as_ref(&self) -> &Idempotency {
        &self.engine
    }
}

#[idempotent(prefix = "engine", key = "request.order_no", engine = app)]
async fn by_engine(app: &App, request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

#[tokio::test]
async fn a_named_engine_goes_before_the_scope() {
    let app = || App {
        engine: Idempotency::memory(),
    };
    let (app, other, request) = (app(), app(), Request::new("A"));
    assert_eq!(by_engine(&app, &request).await.unwrap(), 1);
    assert_eq!(
        other.engine.scope(by_engine(&app, &request)).await.unwrap(),
        1
    );
    assert_eq!(by_engine(&other, &request).await.unwrap(), 2);
}

#[idempotent(prefix = "store:error", key = "request.order_no")]
async fn needs_the_store(request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

#[idempotent(prefix = "store:run", key = "request.order_no", on_store_error = "run")]
async fn runs_without(request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

// R11
#[tokio::test]
async fn without_the_store_a_body_runs_only_where_that_was_asked_for() {
    let (idem, store) = faulty();
    store.always(Verb::Claim, Fault::fail(StoreErrorKind::Unavailable));
    idem.scope(async {
        let request = Request::new("A");
        let refused = needs_the_store(&request).await;
        assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
        assert_eq!(request.bodies.count(), 0);
        let (result, outcome) = observe(runs_without(&request)).await;
        assert_eq!(result.unwrap(), 1);
        assert_eq!(outcome, Outcome::Unguarded);
        assert_eq!(idem.counts().unguarded, 1);
    })
    .await;
}
