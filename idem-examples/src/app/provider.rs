//! The simulated payment provider's own desk: how slow it is, and what it would send us.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::{Deserialize, Serialize};

use crate::answer::Refusal;
use crate::database::Dialect;
use crate::gateway::Charge;
use crate::input::Input;
use crate::orders;
use crate::payments::{Kind, Notification};
use crate::seal::Seal;
use crate::shop::Shop;

/// The longest delay that the page may give it: below the limit at which we hang up.
const LONGEST_DELAY_MS: u64 = 2_500;

pub(super) fn routes<DB: Dialect>(seal: Seal) -> Router<Shop<DB>> {
    Router::new()
        .route("/provider", get(settings).put(change))
        .route("/provider/notifications", post(notification))
        .layer(Extension(seal))
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Settings {
    delay_ms: u64,
}

async fn settings<DB: Dialect>(State(shop): State<Shop<DB>>) -> Json<Settings> {
    let delay_ms = u64::try_from(shop.gateway.delay().as_millis()).unwrap_or(u64::MAX);
    Json(Settings { delay_ms })
}

async fn change<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Input(asked): Input<Settings>,
) -> Json<Settings> {
    let delay_ms = asked.delay_ms.min(LONGEST_DELAY_MS);
    shop.gateway.set_delay_ms(delay_ms);
    settings(State(shop)).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Occasion {
    order_no: String,
    kind: Kind,
}

/// What the provider would send, to the letter.
#[derive(Debug, Serialize)]
struct Signed {
    body: String,
    signature: String,
}

async fn notification<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Extension(seal): Extension<Seal>,
    Input(Occasion { order_no, kind }): Input<Occasion>,
) -> Result<Json<Signed>, Refusal> {
    let charge = charge(&shop, &order_no, kind).await?;
    let note = Notification {
        charge_no: charge.charge_no,
        kind,
        order_no,
        amount_cents: charge.amount_cents,
    };
    let body = serde_json::to_string(&note).map_err(|error| Refusal::internal(&error))?;
    let signature = seal.sign(body.as_bytes());
    Ok(Json(Signed { body, signature }))
}

/// The order's charge; where there is none yet, its buyer pays now, at the provider's own page. Not to
/// be given it back.
async fn charge<DB: Dialect>(
    shop: &Shop<DB>,
    order_no: &str,
    kind: Kind,
) -> Result<Charge, Refusal> {
    let order = orders::find(&shop.pool, order_no).await?;
    let order = order.ok_or_else(Refusal::nothing_here)?;
    if let Some(charge) = shop.gateway.first_charge(order_no).await? {
        return Ok(charge);
    }
    if kind == Kind::Refunded {
        return Err(Refusal::new(
            StatusCode::CONFLICT,
            "no_charge",
            "Nothing was charged that could be given back.",
        ));
    }
    let amount_cents = order.amount_cents;
    Ok(shop.gateway.charge_there(order_no, amount_cents).await?)
}
