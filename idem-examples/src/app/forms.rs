//! Logging in, and the form with a one-time token.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json, Router};
use idem_core::{Idempotency, observe};

use crate::answer::{Refusal, answer};
use crate::database::Dialect;
use crate::input::Input;
use crate::scenes::submit_form::{self, Form};
use crate::session::{Sessions, User};
use crate::shop::Shop;

pub(super) fn routes<DB: Dialect>() -> Router<Shop<DB>> {
    Router::new()
        .route("/session", post(log_in).get(who))
        .route("/form", post(open))
        .route("/form/submit", post(submit))
}

async fn log_in(
    Extension(sessions): Extension<Sessions>,
    Json(user): Json<User>,
) -> Result<impl IntoResponse, Refusal> {
    Ok(([(header::SET_COOKIE, sessions.open(&user)?)], Json(user)))
}

async fn who(user: User) -> Json<User> {
    Json(user)
}

/// By POST, and not to be kept: a GET is prefetched and cached, and a token is used once.
async fn open(
    Extension(idem): Extension<Idempotency>,
    user: User,
) -> Result<impl IntoResponse, Refusal> {
    let opened = submit_form::open(&idem, &user).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(opened)))
}

async fn submit<DB: Dialect>(
    State(shop): State<Shop<DB>>,
    user: User,
    Input(form): Input<Form>,
) -> Response {
    let submitted = observe(submit_form::submit(shop, user, form)).await;
    answer(StatusCode::CREATED, submitted)
}
