//! Routes, and what stands behind each.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post, put};
use axum::{Extension, Json, Router};
use idem_core::{Idempotency, observe};
use serde::{Deserialize, Serialize};

use crate::answer::{Refusal, answer};
use crate::database::Dialect;
use crate::gateway::Card;
use crate::input::Input;
use crate::orders::{self, Order};
use crate::page;
use crate::records::{self, Line};
use crate::scenes::create_order::{NewOrder, create_order};
use crate::scenes::flash_sale::{BuyRequest, buy};
use crate::scenes::pay::{PayRequest, pay};
use crate::shop::Shop;
use crate::stock::{self, Sale};

/// The longest delay that the page may give the provider: below the limit at which we hang up.
const LONGEST_DELAY_MS: u64 = 2_500;

/// The service.
pub fn router<DB: Dialect>(shop: Shop<DB>, idem: Idempotency) -> Router {
    Router::new()
        .route("/", get(page::index))
        .route("/page/{file}", get(page::file))
        .route("/orders", get(list_orders).post(post_order))
        .route("/orders/{order_no}", get(get_order))
        .route("/orders/{order_no}/pay", post(post_pay))
        .route("/sales/{sale_no}", put(put_sale).get(get_sale))
        .route("/sales/{sale_no}/buy", post(post_buy))
        .route("/records", get(list_records))
        .route("/provider", get(get_provider).put(put_provider))
        .fallback(async || Refusal::nothing_here())
        .layer(Extension(idem))
        .with_state(shop)
}

async fn post_order<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Input(request): Input<NewOrder>,
) -> Response {
    let created = observe(create_order(shop, request)).await;
    answer(StatusCode::CREATED, created)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payment {
    card: Card,
}

async fn post_pay<DB: Dialect>(
    State(shop): State<Shop<DB>>,
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

async fn get_order<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Path(order_no): Path<String>,
) -> Result<Json<OrderLine>, Refusal> {
    let order = orders::find(&shop.pool, &order_no).await?;
    let order = order.ok_or_else(Refusal::nothing_here)?;
    let charges = shop.gateway.count(&order_no).await?;
    Ok(Json(OrderLine { order, charges }))
}

async fn list_orders<DB: Dialect>(
    State(shop): State<Shop<DB>>,
) -> Result<Json<Vec<OrderLine>>, Refusal> {
    const SHOWN: i64 = 8;
    let orders = orders::newest(&shop.pool, SHOWN).await?;
    let counts = shop.gateway.counts().await?;
    let with_charges = |order: Order| OrderLine {
        charges: counts.get(&order.order_no).copied().unwrap_or_default(),
        order,
    };
    Ok(Json(orders.into_iter().map(with_charges).collect()))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NewSale {
    available: u16,
}

/// Opens a sale; one that is open stays as it is.
async fn put_sale<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Path(sale_no): Path<String>,
    Input(sale): Input<NewSale>,
) -> Result<Json<Sale>, Refusal> {
    if !(1..=16).contains(&sale_no.len()) {
        let rule = "a sale's number has 1 to 16 bytes";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "invalid_sale", rule));
    }
    stock::open(&shop.pool, &sale_no, sale.available.into()).await?;
    get_sale(State(shop), Path(sale_no)).await
}

async fn get_sale<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Path(sale_no): Path<String>,
) -> Result<Json<Sale>, Refusal> {
    let sale = stock::find(&shop.pool, &sale_no).await?;
    sale.map(Json).ok_or_else(Refusal::nothing_here)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Click {
    request_id: String,
    buyer: String,
}

async fn post_buy<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Path(sale_no): Path<String>,
    Input(Click { request_id, buyer }): Input<Click>,
) -> Response {
    let request = BuyRequest {
        request_id,
        sale_no,
        buyer,
    };
    answer(StatusCode::CREATED, observe(buy(shop, request)).await)
}

async fn list_records(Extension(idem): Extension<Idempotency>) -> Result<Json<Vec<Line>>, Refusal> {
    const SHOWN: usize = 20;
    Ok(Json(records::youngest(&idem, SHOWN).await?))
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Provider {
    delay_ms: u64,
}

async fn get_provider<DB: Dialect>(State(shop): State<Shop<DB>>) -> Json<Provider> {
    let delay_ms = u64::try_from(shop.gateway.delay().as_millis()).unwrap_or(u64::MAX);
    Json(Provider { delay_ms })
}

async fn put_provider<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Input(asked): Input<Provider>,
) -> Json<Provider> {
    let delay_ms = asked.delay_ms.min(LONGEST_DELAY_MS);
    shop.gateway.set_delay_ms(delay_ms);
    get_provider(State(shop)).await
}
