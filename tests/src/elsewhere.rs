//! A server that somebody else has started.

/// The URL in `IDEM_SERVER`, by which the campaign of mutants puts a relay in between, or one's own.
pub fn server(own: impl FnOnce() -> String) -> String {
    std::env::var("IDEM_SERVER").unwrap_or_else(|_| own())
}
