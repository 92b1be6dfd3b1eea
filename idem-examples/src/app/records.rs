//! The live list of records.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use idem_core::Idempotency;

use crate::answer::Refusal;
use crate::records::{self, Line};

pub(super) fn routes<S>(everywhere: [Idempotency; 2]) -> Router<S> {
    Router::new()
        .route("/records", get(list))
        .with_state(everywhere)
}

async fn list(State(everywhere): State<[Idempotency; 2]>) -> Result<Json<Vec<Line>>, Refusal> {
    const SHOWN: usize = 20;
    Ok(Json(records::youngest(&everywhere, SHOWN).await?))
}
