//! The page: files in the program, and nothing from anywhere else.

use axum::extract::Path;
use axum::http::header;
use axum::response::{Html, IntoResponse};

use crate::answer::Refusal;

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

const FILES: [(&str, &str, &str); 14] = [
    ("style.css", CSS, include_str!("style.css")),
    ("main.js", JS, include_str!("main.js")),
    ("sale.js", JS, include_str!("sale.js")),
    ("refresh.js", JS, include_str!("refresh.js")),
    ("pay.js", JS, include_str!("pay.js")),
    ("form.js", JS, include_str!("form.js")),
    ("create.js", JS, include_str!("create.js")),
    ("callback.js", JS, include_str!("callback.js")),
    ("dom.js", JS, include_str!("dom.js")),
    ("http.js", JS, include_str!("http.js")),
    ("orders.js", JS, include_str!("orders.js")),
    ("panel.js", JS, include_str!("panel.js")),
    ("records.js", JS, include_str!("records.js")),
    ("texts.js", JS, include_str!("texts.js")),
];

/// The page itself.
pub(crate) async fn index() -> impl IntoResponse {
    const NOTHING_FROM_ELSEWHERE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
         connect-src 'self'; img-src data:";
    let headers = [(header::CONTENT_SECURITY_POLICY, NOTHING_FROM_ELSEWHERE)];
    (headers, Html(include_str!("index.html")))
}

/// What it is made of.
pub(crate) async fn file(Path(name): Path<String>) -> Result<impl IntoResponse, Refusal> {
    let found = FILES.into_iter().find(|(known, ..)| *known == name);
    let (_, kind, text) = found.ok_or_else(Refusal::nothing_here)?;
    Ok(([(header::CONTENT_TYPE, kind)], text))
}
