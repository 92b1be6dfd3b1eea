//! Keys from arguments: missing parts, parts that change, prefixes that meet.

use idem_core::{Error, Idempotency, Key, KeyPart, Outcome, idempotent, observe};

use crate::shop::{PayError, Request, with_engine};

#[idempotent(prefix = "keys:coupon", key = "request.coupon")]
async fn by_coupon(request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

#[idempotent(
    prefix = "keys:coupon",
    key = "request.coupon?",
    on_missing_key = "run"
)]
async fn by_coupon_or_not(request: &Request) -> Result<u32, Error> {
    assert!(idem_core::Attempt::current().is_none());
    Ok(request.body().await)
}

// K01
#[tokio::test]
async fn requests_without_a_key_never_share_a_record() {
    with_engine(async |idem| {
        let request = Request::new("A");
        for _ in 0..2 {
            let refused = by_coupon(&request).await;
            let Err(Error::MissingKey { part }) = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(part, "request.coupon");
        }
        assert_eq!(request.bodies.count(), 0);
        assert!(idem.records("").await.unwrap().is_empty());
    })
    .await;
}

// K01
#[tokio::test]
async fn requests_without_a_key_run_each_time_where_that_was_asked_for() {
    with_engine(async |idem| {
        let request = Request::new("A");
        for number in 1..=2 {
            let (result, outcome) = observe(by_coupon_or_not(&request)).await;
            assert_eq!(result.unwrap(), number);
            assert_eq!(outcome, Outcome::Unguarded);
        }
        assert!(idem.records("").await.unwrap().is_empty());
    })
    .await;
}

#[idempotent(prefix = "keys:two", key = (first, second))]
async fn by_two(first: Option<&str>, second: Option<&str>) -> Result<u8, Error> {
    let _ = (first, second);
    Ok(1)
}

// K02, K03
#[tokio::test]
async fn a_part_that_is_none_or_blank_is_missing_wherever_it_stands() {
    with_engine(async |idem| {
        for blank in [
            None,
            Some(""),
            Some(" "),
            Some("\t\n"),
            Some("\u{200b}"),
            Some("\0"),
        ] {
            for (first, second) in [(blank, blank), (blank, Some("x")), (Some("x"), blank)] {
                let refused = by_two(first, second).await;
                assert!(
                    matches!(refused, Err(Error::MissingKey { .. })),
                    "{refused:?}"
                );
            }
        }
        assert!(idem.records("").await.unwrap().is_empty());
        by_two(Some("a:b"), Some("c")).await.unwrap();
        by_two(Some("a"), Some("b:c")).await.unwrap();
        assert_eq!(idem.records("").await.unwrap().len(), 2);
    })
    .await;
}

#[idempotent(prefix = "keys:changes", key = "request.order_no")]
async fn changes(mut request: Request) -> Result<String, PayError> {
    let number = request.body().await;
    request.order_no.push('x');
    let taken = std::mem::take(&mut request.order_no);
    if number == 1 {
        return Err(PayError::Declined(number));
    }
    Ok(taken)
}

// K04
#[tokio::test]
async fn a_body_that_changes_its_argument_settles_the_key_it_claimed() {
    with_engine(async |idem| {
        let request = Request::new("A");
        let failed = changes(request.clone()).await;
        assert_eq!(failed, Err(PayError::Declined(1)));
        for _ in 0..2 {
            assert_eq!(changes(request.clone()).await.unwrap(), "Ax");
        }
        assert_eq!(request.bodies.count(), 2);
        let records = idem.records("keys:changes").await.unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].key, "keys:changes::A");
    })
    .await;
}

mod first {
    use super::{Error, Request, idempotent};

    #[idempotent(prefix = "keys:shared", key = "request.order_no")]
    pub(super) async fn number(request: &Request) -> Result<u32, Error> {
        Ok(request.body().await)
    }
}

mod second {
    use super::{Error, Request, idempotent};

    #[idempotent(prefix = "keys:shared", key = "request.order_no")]
    pub(super) async fn text(request: &Request) -> Result<String, Error> {
        Ok(request.body().await.to_string())
    }
}

// K05
#[tokio::test]
async fn two_functions_with_one_prefix_are_told_apart_and_the_second_is_refused() {
    let request = Request::new("A");
    with_engine(async |_| {
        assert_eq!(first::number(&request).await.unwrap(), 1);
        for order_no in ["A", "B"] {
            let refused = second::text(&Request::new(order_no)).await.unwrap_err();
            let Error::PrefixConflict { first, second, .. } = &refused else {
                panic!("{refused:?}");
            };
            assert!(first.contains("first::number"), "{first}");
            assert!(second.contains("second::text"), "{second}");
        }
        assert_eq!(first::number(&request).await.unwrap(), 1);
    })
    .await;
    // In another engine it may come first.
    with_engine(async |_| assert_eq!(second::text(&request).await.unwrap(), "2")).await;
}

#[derive(KeyPart)]
struct OrderNo(u64);

#[derive(KeyPart)]
enum Channel {
    Web,
    #[expect(dead_code, reason = "a second one, to be told apart")]
    Shop,
}

#[idempotent(prefix = "keys:derived", key = "{channel}:{order_no}")]
async fn derived(channel: Channel, order_no: OrderNo) -> Result<u8, Error> {
    let _ = (channel, order_no);
    Ok(1)
}

// K06
#[tokio::test]
async fn a_key_does_not_name_the_function_and_a_program_can_make_it() {
    with_engine(async |idem| {
        derived(Channel::Web, OrderNo(7)).await.unwrap();
        let records = idem.records("keys:derived").await.unwrap();
        assert_eq!(records[0].key, "keys:derived::Web:7");
        let key = Key::new("keys:derived", ("Web", 7)).unwrap();
        assert!(idem.peek(&key).await.unwrap().is_some());
    })
    .await;
}

#[idempotent(prefix = "keys:inner", key = "request.order_no")]
async fn inner(request: &Request) -> Result<u32, Error> {
    Ok(request.body().await)
}

#[idempotent(prefix = "keys:outer", key = "request.order_no")]
async fn outer(request: &Request) -> Result<String, Error> {
    Ok(format!("outer of {}", inner(request).await?))
}

// K07
#[tokio::test]
async fn a_guarded_function_inside_another_keeps_a_record_of_its_own() {
    with_engine(async |idem| {
        let request = Request::new("A");
        for _ in 0..2 {
            assert_eq!(outer(&request).await.unwrap(), "outer of 1");
            assert_eq!(inner(&request).await.unwrap(), 1);
        }
        for prefix in ["keys:inner", "keys:outer"] {
            assert_eq!(idem.records(prefix).await.unwrap().len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_scope_goes_before_the_engine_around_it() {
    let (outside, inside) = (Idempotency::memory(), Idempotency::memory());
    let request = Request::new("A");
    outside
        .scope(async {
            assert_eq!(inner(&request).await.unwrap(), 1);
            assert_eq!(inside.scope(inner(&request)).await.unwrap(), 2);
            assert_eq!(inner(&request).await.unwrap(), 1);
        })
        .await;
}
