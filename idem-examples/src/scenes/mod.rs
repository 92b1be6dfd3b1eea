//! The scenes: one annotated service function each, with what it takes, gives and says.

pub mod create_order;
pub mod flash_sale;
pub mod pay;
