//! A process that dies at a named point of a guarded call, and what its heirs need: the binary
//! `mortal` and the suite `crashes` run the same guarded functions.
//!
//! No code under test knows of it. A body stops where it is told to ([`trap::at`]); what lies
//! between two lines of a body is reached from outside: the [`wire`] counts what is sent, and a
//! [store that wraps](crate::faulty) ends the process after the store has done its work.

pub mod base;
mod failure;
pub mod forms;
pub mod lease;
mod mode;
pub mod places;
mod point;
pub mod transaction;
pub mod trap;
pub mod wire;

pub use failure::Failed;
pub use mode::{Body, Mode};
pub use point::Point;
