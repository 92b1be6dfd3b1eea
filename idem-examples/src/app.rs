//! Routes, and what stands behind each.

use axum::extract::{FromRef, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use idem_core::{Idempotency, observe};
use serde::{Deserialize, Serialize};

use crate::answer::{Refusal, answer};
use crate::gateway::{Card, Gateway};
use crate::input::Input;
use crate::orders::Order;
use crate::records::{self, Line};
use crate::scenes::create_order::{NewOrder, create_order};
use crate::scenes::pay::{PayRequest, pay};
use crate::shop::Shop;

/// The longest delay that the page may give the provider: below the limit at which we hang up.
const LONGEST_DELAY_MS: u64 = 2_500;

#[derive(Debug, Clone)]
struct App {
    shop: Shop,
    idem: Idempotency,
}

impl FromRef<App> for Shop {
    fn from_ref(app: &App) -> Self {
        app.shop.clone()
    }
}

impl FromRef<App> for Gateway {
    fn from_ref(app: &App) -> Self {
        app.shop.gateway.clone()
    }
}

impl FromRef<App> for Idempotency {
    fn from_ref(app: &App) -> Self {
        app.idem.clone()
    }
}

/// The service.
pub fn router(shop: Shop, idem: Idempotency) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/orders", get(list_orders).post(post_order))
        .route("/orders/{order_no}", get(get_order))
        .route("/orders/{order_no}/pay", post(post_pay))
        .route("/records", get(list_records))
        .route("/provider", get(get_provider).put(put_provider))
        .fallback(async || Refusal::nothing_here())
        .with_state(App { shop, idem })
}

async fn page() -> impl IntoResponse {
    const NOTHING_FROM_ELSEWHERE: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
         connect-src 'self'; img-src data:";
    let headers = [(header::CONTENT_SECURITY_POLICY, NOTHING_FROM_ELSEWHERE)];
    (headers, Html(include_str!("page.html")))
}

async fn post_order(State(shop): State<Shop>, Input(request): Input<NewOrder>) -> Response {
    let created = observe(create_order(shop.orders, request)).await;
    answer(StatusCode::CREATED, created)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payment {
    card: Card,
}

async fn post_pay(
    State(shop): State<Shop>,
    Path(order_no): Path<String>,
    Input(Payment { card }): Input<Payment>,
) -> Response {
    let paid = observe(pay(shop, PayRequest { order_no, card })).await;
    answer(StatusCode::OK, paid)
}

/// An order, and what only the provider knows.
#[derive(Debug, Serialize)]
struct OrderLine {
    #[serde(flatten)]
    order: Order,
    charges: i64,
}

async fn get_order(
    State(shop): State<Shop>,
    Path(order_no): Path<String>,
) -> Result<Json<OrderLine>, Refusal> {
    let order = shop.orders.find(&order_no).await?;
    let order = order.ok_or_else(Refusal::nothing_here)?;
    let charges = shop.gateway.count(&order_no).await?;
    Ok(Json(OrderLine { order, charges }))
}

async fn list_orders(State(shop): State<Shop>) -> Result<Json<Vec<OrderLine>>, Refusal> {
    const SHOWN: u32 = 8;
    let orders = shop.orders.newest(SHOWN).await?;
    let counts = shop.gateway.counts().await?;
    let with_charges = |order: Order| OrderLine {
        charges: counts.get(&order.order_no).copied().unwrap_or_default(),
        order,
    };
    Ok(Json(orders.into_iter().map(with_charges).collect()))
}

async fn list_records(State(idem): State<Idempotency>) -> Result<Json<Vec<Line>>, Refusal> {
    const SHOWN: usize = 20;
    Ok(Json(records::youngest(&idem, SHOWN).await?))
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Provider {
    delay_ms: u64,
}

async fn get_provider(State(gateway): State<Gateway>) -> Json<Provider> {
    let delay_ms = u64::try_from(gateway.delay().as_millis()).unwrap_or(u64::MAX);
    Json(Provider { delay_ms })
}

async fn put_provider(
    State(gateway): State<Gateway>,
    Input(asked): Input<Provider>,
) -> Json<Provider> {
    gateway.set_delay_ms(asked.delay_ms.min(LONGEST_DELAY_MS));
    get_provider(State(gateway)).await
}
