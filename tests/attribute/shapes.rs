//! Every shape of function.

use std::error::Error as StdError;
use std::fmt::{self, Display};

use idem_core::{Error, Outcome, idempotent, observe};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::shop::{Receipt, Request, with_engine};

#[idempotent(prefix = "order:pay", key = "request.order_no", expire = 600)]
async fn pay(request: Request) -> Result<Receipt, Error> {
    let number = request.body().await;
    Ok(Receipt {
        order_no: request.order_no,
        number,
    })
}

#[tokio::test]
async fn a_second_call_gets_the_first_answer() {
    with_engine(async |_| {
        let request = Request::new("A-1");
        let (first, outcome) = observe(pay(request.clone())).await;
        assert_eq!(outcome, Outcome::Executed);
        let (second, outcome) = observe(pay(request.clone())).await;
        assert_eq!(outcome, Outcome::Replayed);
        assert_eq!(first.unwrap(), second.unwrap());
        let other = Request {
            order_no: "A-2".into(),
            ..request
        };
        assert_eq!(pay(other).await.unwrap().number, 2);
    })
    .await;
}

#[idempotent(prefix = "lifetimes", key = "request.order_no")]
async fn with_lifetimes<'a, 'b: 'a>(request: &'a Request, note: &'b str) -> Result<String, Error> {
    Ok(format!("{note} {}", request.body().await))
}

#[idempotent(prefix = "borrows", key = "request.order_no", on_duplicate = "reject")]
async fn borrows<'a>(request: &'a Request) -> Result<&'a str, Error> {
    request.body().await;
    Ok(&request.order_no)
}

// M01
#[tokio::test]
async fn borrowed_arguments_and_results() {
    with_engine(async |_| {
        let request = Request::new("A");
        assert_eq!(with_lifetimes(&request, "n").await.unwrap(), "n 1");
        assert_eq!(with_lifetimes(&request, "m").await.unwrap(), "n 1");

        let request = Request::new("A");
        assert_eq!(borrows(&request).await.unwrap(), "A");
        let refused = borrows(&request).await;
        assert!(
            matches!(refused, Err(Error::Duplicate { .. })),
            "{refused:?}"
        );
        assert_eq!(request.bodies.count(), 1);
    })
    .await;
}

trait HasOrder {
    fn request(&self) -> &Request;
}

impl HasOrder for Request {
    fn request(&self) -> &Request {
        self
    }
}

#[idempotent(prefix = "bounds", key = "request.request().order_no")]
async fn with_bounds<T, const N: usize>(request: T) -> Result<[u32; N], Error>
where
    T: HasOrder + Send,
    [u32; N]: Serialize + DeserializeOwned,
{
    Ok([request.request().body().await; N])
}

// M02
#[tokio::test]
async fn generics_with_bounds_in_a_where_clause() {
    with_engine(async |_| {
        let request = Request::new("A");
        assert_eq!(with_bounds::<_, 2>(request.clone()).await.unwrap(), [1, 1]);
        assert_eq!(with_bounds::<_, 2>(request).await.unwrap(), [1, 1]);
    })
    .await;
}

trait Db {
    const NAME: &'static str;
}
struct Postgres;
struct Sqlite;
impl Db for Postgres {
    const NAME: &'static str = "postgres";
}
impl Db for Sqlite {
    const NAME: &'static str = "sqlite";
}

#[idempotent(prefix = "generic", key = "request.order_no")]
async fn generic<D: Db>(_db: &D, request: Request) -> Result<String, Error> {
    request.body().await;
    Ok(D::NAME.into())
}

// M03
#[tokio::test]
async fn one_generic_function_is_one_function_whatever_its_type() {
    with_engine(async |_| {
        let request = Request::new("A");
        assert_eq!(
            generic(&Postgres, request.clone()).await.unwrap(),
            "postgres"
        );
        assert_eq!(generic(&Sqlite, request.clone()).await.unwrap(), "postgres");
        assert_eq!(request.bodies.count(), 1);
    })
    .await;
}

type Outcomes<T> = Result<T, Box<dyn StdError + Send + Sync>>;

#[derive(Debug)]
struct Odd;

impl Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("odd")
    }
}

impl StdError for Odd {}

#[idempotent(prefix = "boxes", key = "request.order_no", on_duplicate = "reject")]
async fn boxes(request: &Request) -> Outcomes<Box<dyn Display + Send>> {
    let number = request.body().await;
    if number == 1 {
        return Err(Box::new(Odd));
    }
    if number == 2 {
        Err(Odd)?;
    }
    'found: {
        if number == 3 {
            break 'found;
        }
        return Err("late".into());
    }
    Ok(Box::new(number))
}

// M09, X04
#[tokio::test]
async fn boxed_results_by_every_way_out_of_a_body() {
    with_engine(async |_| {
        let request = Request::new("A");
        for _ in 0..2 {
            let failed = boxes(&request).await.err().unwrap();
            assert_eq!(failed.to_string(), "odd");
        }
        assert_eq!(boxes(&request).await.ok().unwrap().to_string(), "3");
        let refused = boxes(&request).await.err().unwrap();
        let refused = refused.downcast::<Error>().unwrap();
        assert_eq!(refused.code(), "duplicate");
    })
    .await;
}

#[idempotent(prefix = "anyhow", key = "request.order_no")]
async fn by_anyhow(request: &Request) -> anyhow::Result<Receipt> {
    let number = request.body().await;
    anyhow::ensure!(number > 1, "the first one fails");
    Ok(Receipt {
        order_no: request.order_no.clone(),
        number,
    })
}

// M15, E07
#[tokio::test]
async fn anyhow_errors_fail_and_the_guards_own_error_can_be_taken_out() {
    with_engine(async |idem| {
        let request = Request::new("A");
        let failed = by_anyhow(&request).await.unwrap_err();
        assert_eq!(failed.to_string(), "the first one fails");
        assert_eq!(by_anyhow(&request).await.unwrap().number, 2);
        assert_eq!(by_anyhow(&request).await.unwrap().number, 2);
        let missing = by_anyhow(&Request::new("")).await.unwrap_err();
        let missing = missing.downcast_ref::<Error>().unwrap();
        assert_eq!(missing.code(), "missing_key");
        assert_eq!(idem.records("anyhow").await.unwrap().len(), 1);
    })
    .await;
}

struct Json<T>(T);

#[idempotent(prefix = "patterns", key = "{request.order_no}:{tenant}")]
async fn with_patterns(
    Json(mut request): Json<Request>,
    (tenant, _region): (String, u8),
    _: &Sqlite,
) -> Result<String, Error> {
    request.amount += request.body().await;
    Ok(format!("{tenant} {}", request.amount))
}

// M19
#[tokio::test]
async fn arguments_bound_by_patterns() {
    with_engine(async |_| {
        let request = Request::new("A");
        for _ in 0..2 {
            let request = Json(request.clone());
            let paid = with_patterns(request, ("T".into(), 1), &Sqlite).await;
            assert_eq!(paid.unwrap(), "T 1");
        }
        assert_eq!(request.bodies.count(), 1);
    })
    .await;
}

#[idempotent(prefix = "panics", key = "request.order_no")]
async fn panics(request: &Request) -> Result<u32, Error> {
    let number = request.body().await;
    assert_ne!(request.order_no, "bad", "the payload");
    Ok(number)
}

// M21, X04
#[tokio::test]
async fn a_panic_reaches_its_caller_and_harms_nobody_else() {
    with_engine(async |idem| {
        let (engine, request) = (idem.clone(), Request::new("bad"));
        let call = async move { engine.scope(panics(&request)).await };
        let payload = tokio::spawn(call).await.unwrap_err().into_panic();
        let text = payload.downcast_ref::<String>().unwrap();
        assert!(text.contains("the payload"), "{text}");
        for number in 0..100 {
            let request = Request::new(&number.to_string());
            assert_eq!(panics(&request).await.unwrap(), 1);
        }
        let refused = panics(&Request::new("bad")).await;
        assert!(
            matches!(refused, Err(Error::OutcomeUnknown { .. })),
            "{refused:?}"
        );
    })
    .await;
}

#[idempotent(prefix = "unit", key = "request.order_no")]
async fn unit(request: &Request) -> Result<(), Error> {
    request.body().await;
    Ok(())
}

// S02
#[tokio::test]
async fn a_function_without_a_result_is_replayed_too() {
    with_engine(async |_| {
        let request = Request::new("A");
        unit(&request).await.unwrap();
        let ((), outcome) = {
            let (result, outcome) = observe(unit(&request)).await;
            (result.unwrap(), outcome)
        };
        assert_eq!(outcome, Outcome::Replayed);
        assert_eq!(request.bodies.count(), 1);
    })
    .await;
}

#[tokio::test]
async fn without_an_engine_the_body_does_not_run() {
    let request = Request::new("A");
    let refused = pay(request.clone()).await;
    assert!(matches!(refused, Err(Error::NotInstalled)), "{refused:?}");
    assert_eq!(request.bodies.count(), 0);
}
