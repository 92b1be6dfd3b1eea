//! Orders and their payment.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use idem_core::observe;
use serde::{Deserialize, Serialize};

use crate::answer::{Refusal, answer};
use crate::database::Dialect;
use crate::gateway::Card;
use crate::input::{Input, Number};
use crate::orders::{self, Order};
use crate::payments::{self, Payment};
use crate::scenes::create_order::{NewOrder, create_order};
use crate::scenes::pay::{PayRequest, pay};
use crate::shop::Shop;

pub(super) fn routes<DB: Dialect>() -> Router<Shop<DB>> {
    Router::new()
        .route("/orders", get(list).post(create))
        .route("/orders/{order_no}", get(show))
        .route("/orders/{order_no}/pay", post(charge))
        .route("/orders/{order_no}/payments", get(list_payments))
}

async fn create<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Input(request): Input<NewOrder>,
) -> Response {
    let created = observe(create_order(shop, request)).await;
    answer(StatusCode::CREATED, created)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payer {
    card: Card,
}

async fn charge<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Number(order_no): Number,
    Input(Payer { card }): Input<Payer>,
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

async fn show<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Number(order_no): Number,
) -> Result<Json<OrderLine>, Refusal> {
    let order = orders::find(&shop.pool, &order_no).await?;
    let order = order.ok_or_else(Refusal::nothing_here)?;
    let charges = shop.gateway.count(&order_no).await?;
    Ok(Json(OrderLine { order, charges }))
}

async fn list<DB: Dialect>(State(shop): State<Shop<DB>>) -> Result<Json<Vec<OrderLine>>, Refusal> {
    const SHOWN: i64 = 8;
    let orders = orders::newest(&shop.pool, SHOWN).await?;
    let counts = shop.gateway.counts().await?;
    let with_charges = |order: Order| OrderLine {
        charges: counts.get(&order.order_no).copied().unwrap_or_default(),
        order,
    };
    Ok(Json(orders.into_iter().map(with_charges).collect()))
}

async fn list_payments<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Number(order_no): Number,
) -> Result<Json<Vec<Payment>>, Refusal> {
    Ok(Json(payments::of_order(&shop.pool, &order_no).await?))
}
