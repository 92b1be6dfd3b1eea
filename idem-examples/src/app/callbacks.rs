//! What the payment provider sends us.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Router};
use idem_core::observe;

use crate::answer::respond;
use crate::apart::apart;
use crate::database::Dialect;
use crate::scenes::callback::receive;
use crate::seal::Seal;
use crate::shop::Shop;

const SIGNATURE: &str = "x-provider-signature";

/// What the provider takes for an answer, to the letter and without quotes. It comes again after any
/// other.
const SUCCESS: &str = "success";

pub(super) fn routes<DB: Dialect>(provider: Seal) -> Router<Shop<DB>> {
    Router::new()
        .route("/callbacks/payment", post(notified))
        .layer(Extension(provider))
}

/// The body is taken as bytes: what was signed is not what a parser makes of it.
///
/// A provider that hangs up drops this handler, but not the transaction in it.
async fn notified<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    Extension(provider): Extension<Seal>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let signature = headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    let signature = signature.unwrap_or_default().to_owned();
    let receiving = async move { observe(receive(&shop, &provider, &signature, &body)).await };
    let (result, outcome) = apart(receiving).await;
    respond((result.map(|()| SUCCESS), outcome))
}
