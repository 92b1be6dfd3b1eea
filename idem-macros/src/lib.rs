//! The attribute and derives of `idem`; use them through `idem_core`.
