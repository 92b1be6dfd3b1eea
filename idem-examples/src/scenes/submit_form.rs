//! Submit a form: a form that was opened carries a one-time token instead of an id of its own. The
//! token belongs to whoever is logged in, runs the body once, and is handed back by a body that
//! fails, so that a corrected form passes.

use std::time::Duration;

use idem_core::{Attempt, Error, Idempotency, Token, idempotent};
use serde::{Deserialize, Serialize};

use crate::database::Dialect;
use crate::orders::Order;
use crate::scenes::create_order::{CreateError, NewOrder, store};
use crate::session::User;
use crate::shop::Shop;

const PREFIX: &str = "order:submit";

/// How long a form may stay open.
const OPEN_FOR: Duration = Duration::from_mins(30);

/// What is needed to send the form.
#[derive(Debug, Serialize)]
pub struct Opened {
    token: Token,
}

/// The form, as it is sent. It does not say who sends it: that is the session's business.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Form {
    token: Option<Token>,
    item: String,
    quantity: i64,
}

/// A form for this user.
///
/// # Errors
/// [`Error::Store`] if the store gave no answer.
pub async fn open(idem: &Idempotency, user: &User) -> Result<Opened, Error> {
    let token = idem.tokens(PREFIX).issue(&user.name, OPEN_FOR).await?;
    Ok(Opened { token })
}

/// Orders what the form says.
///
/// # Errors
/// See [`CreateError`]; a token that is unknown, expired, used, or another user's is refused
/// alike.
///
/// # Concurrent calls on the same key
/// One runs; the same user's others wait for its order.
#[idempotent(
    prefix = "order:submit",
    token = "form.token",
    subject = "user.name",
    expire = "24h",
    lease = 5,
    in_progress = "wait",
    on_abandoned = "rerun",
    detach = true
)]
pub async fn submit<DB: Dialect>(
    shop: Shop<DB>,
    user: User,
    form: Form,
) -> Result<Order, CreateError> {
    // The same in each retry with this token, so that a second run finds the order of the first.
    let request_id = Attempt::current().map(|attempt| attempt.derive_key("order"));
    let request = NewOrder {
        request_id: request_id.unwrap_or_default(),
        item: form.item,
        quantity: form.quantity,
    };
    store(&shop, request).await
}
