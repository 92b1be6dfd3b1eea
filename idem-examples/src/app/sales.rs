//! Flash sales.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{post, put};
use axum::{Json, Router};
use idem_core::observe;
use serde::Deserialize;

use crate::answer::{Refusal, answer};
use crate::database::Dialect;
use crate::input::{Input, Number, fits};
use crate::scenes::flash_sale::{BuyRequest, buy, buy_in_turn};
use crate::shop::Shop;
use crate::stock::{self, Sale};

pub(super) fn routes<DB: Dialect>() -> Router<Shop<DB>> {
    Router::new()
        .route("/sales/{sale_no}", put(open).get(show))
        .route("/sales/{sale_no}/buy", post(take))
        .route("/sales/{sale_no}/buy-in-turn", post(take_in_turn))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NewSale {
    available: u16,
}

/// One that is open stays as it is.
async fn open<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Number(sale_no): Number,
    Input(sale): Input<NewSale>,
) -> Result<Json<Sale>, Refusal> {
    if !(1..=16).contains(&sale_no.len()) {
        let rule = "a sale's number has 1 to 16 bytes";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "invalid_sale", rule));
    }
    stock::open(&shop.pool, &sale_no, sale.available.into()).await?;
    show(State(shop), Number(sale_no)).await
}

async fn show<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Number(sale_no): Number,
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

impl Click {
    fn on(self, sale_no: String) -> Result<BuyRequest, Refusal> {
        if !fits(&self.request_id) || !fits(&self.buyer) {
            let rule = "a request and a buyer have at most 100 bytes, and no control characters";
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "invalid_purchase",
                rule,
            ));
        }
        Ok(BuyRequest {
            request_id: self.request_id,
            sale_no,
            buyer: self.buyer,
        })
    }
}

async fn take<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Number(sale_no): Number,
    Input(click): Input<Click>,
) -> Result<Response, Refusal> {
    let bought = observe(buy(shop, click.on(sale_no)?)).await;
    Ok(answer(StatusCode::CREATED, bought))
}

async fn take_in_turn<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Number(sale_no): Number,
    Input(click): Input<Click>,
) -> Result<Response, Refusal> {
    let bought = observe(buy_in_turn(shop, click.on(sale_no)?)).await;
    Ok(answer(StatusCode::CREATED, bought))
}
