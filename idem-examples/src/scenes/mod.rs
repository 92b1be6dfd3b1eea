//! The scenes: one annotated service function each, with what it takes, gives and says.

pub mod callback;
pub mod create_order;
pub mod flash_sale;
pub mod messages;
pub mod pay;
pub mod submit_form;
