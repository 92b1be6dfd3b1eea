//! What an error of the body means.

use idem_core::record::Status;
use idem_core::{Idempotency, Key, OnError, Outcome, idempotent, observe};

use crate::shop::{PayError, Request, with_engine};

async fn status(idem: &Idempotency, prefix: &str) -> Option<Status> {
    let key = Key::new(prefix, "A").unwrap();
    let record = idem.peek(&key).await.unwrap();
    record.map(|record| record.status)
}

fn guard(code: &str) -> PayError {
    PayError::Guard(code.into())
}

#[idempotent(prefix = "error:fail", key = "request.order_no")]
async fn fails(request: &Request) -> Result<u32, PayError> {
    Err(PayError::Declined(request.body().await))
}

#[idempotent(
    prefix = "error:release",
    key = "request.order_no",
    on_error = "release"
)]
async fn releases(request: &Request) -> Result<u32, PayError> {
    Err(PayError::Declined(request.body().await))
}

#[idempotent(
    prefix = "error:abandon",
    key = "request.order_no",
    on_error = "abandon"
)]
async fn abandons(request: &Request) -> Result<u32, PayError> {
    Err(PayError::Declined(request.body().await))
}

#[idempotent(prefix = "error:replay", key = "request.order_no", on_error = "replay")]
async fn replays(request: &Request) -> Result<u32, PayError> {
    Err(PayError::Declined(request.body().await))
}

// E07, E18
#[tokio::test]
async fn what_an_error_of_the_body_means() {
    with_engine(async |idem| {
        let request = Request::new("A");
        assert_eq!(fails(&request).await, Err(PayError::Declined(1)));
        assert_eq!(status(idem, "error:fail").await, Some(Status::Failed));
        assert_eq!(fails(&request).await, Err(PayError::Declined(2)));

        let request = Request::new("A");
        assert_eq!(releases(&request).await, Err(PayError::Declined(1)));
        assert_eq!(status(idem, "error:release").await, None);
        assert_eq!(releases(&request).await, Err(PayError::Declined(2)));

        let request = Request::new("A");
        assert_eq!(abandons(&request).await, Err(PayError::Declined(1)));
        assert_eq!(
            status(idem, "error:abandon").await,
            Some(Status::Processing)
        );
        assert_eq!(abandons(&request).await, Err(guard("outcome_unknown")));

        let request = Request::new("A");
        assert_eq!(replays(&request).await, Err(PayError::Declined(1)));
        let (again, outcome) = observe(replays(&request)).await;
        assert_eq!(again, Err(PayError::Declined(1)));
        assert_eq!(outcome, Outcome::Replayed);
        assert_eq!(request.bodies.count(), 1);
    })
    .await;
}

fn classify(error: &PayError) -> OnError {
    match error {
        PayError::Declined(_) => OnError::Fail,
        PayError::Busy => OnError::Release,
        PayError::Final(_) => OnError::Replay,
        PayError::TimedOut | PayError::Guard(_) => OnError::Abandon,
    }
}

#[idempotent(prefix = "error:by", key = "request.order_no", on_error = classify, replay_errors = true)]
async fn classified(request: &Request, error: fn(u32) -> PayError) -> Result<u32, PayError> {
    Err(error(request.body().await))
}

// N03
#[tokio::test]
async fn a_classifier_decides_by_the_errors_value() {
    let first_and_second = [
        (
            PayError::Declined as fn(u32) -> PayError,
            PayError::Declined(2),
        ),
        (|_| PayError::Busy, PayError::Busy),
        (|_| PayError::TimedOut, guard("outcome_unknown")),
        (PayError::Final, PayError::Final(1)),
    ];
    for (error, second) in first_and_second {
        with_engine(async |_| {
            let request = Request::new("A");
            assert_eq!(classified(&request, error).await, Err(error(1)));
            let runs = matches!(second, PayError::Declined(_) | PayError::Busy);
            assert_eq!(classified(&request, error).await, Err(second));
            assert_eq!(request.bodies.count(), if runs { 2 } else { 1 });
        })
        .await;
    }
}
