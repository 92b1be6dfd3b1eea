//! How much is run: what fits into an ordinary check, or a campaign where `IDEM_LONG` is set.

/// Whether there is time for everything.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("IDEM_LONG").is_some()
}

/// The length of a random history that usually has `few` operations.
#[must_use]
pub fn operations(few: usize) -> usize {
    if is_long() { 1_000_000 } else { few }
}
