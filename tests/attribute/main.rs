//! The attribute, end to end.

mod smoke;
