//! Routes, and what stands behind each.

mod callbacks;
mod forms;
mod orders;
mod provider;
mod records;
mod sales;

use axum::routing::get;
use axum::{Extension, Router};
use idem_core::Idempotency;

use crate::answer::Refusal;
use crate::database::Dialect;
use crate::page;
use crate::seal::Seal;
use crate::session::Sessions;
use crate::shop::Shop;

/// The service.
///
/// # Errors
/// What the database says when it is asked to keep records.
pub async fn router<DB: Dialect>(
    shop: Shop<DB>,
    idem: Idempotency,
    seal: &Seal,
) -> anyhow::Result<Router> {
    let provider = seal.of("provider");
    let beside_tables = DB::records(&shop.pool).await?;
    Ok(Router::new()
        .route("/", get(page::index))
        .route("/page/{file}", get(page::file))
        .merge(orders::routes())
        .merge(forms::routes())
        .merge(callbacks::routes(provider.clone()))
        .merge(sales::routes())
        .merge(provider::routes(provider))
        .merge(records::routes([idem.clone(), beside_tables]))
        .fallback(async || Refusal::nothing_here())
        .layer(Extension(idem))
        .layer(Extension(Sessions::new(seal.of("session"))))
        .with_state(shop))
}
