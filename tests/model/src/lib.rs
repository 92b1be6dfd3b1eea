//! The record's specification under a model checker.
//!
//! The verbs of [`idem_core::record`], themselves and not a copy, run as the store of one key.
//! Around them: attempts that send, resend, give up, take over and settle as the engine does;
//! packets that arrive at any moment, any number of times, or never; replies that are lost; owners
//! that fall silent; an operator who speaks about what was read before; a store that loses
//! everything. [`Plan`] says which of it, and how much; every history within a plan is tried.

mod attempt;
mod client;
mod delivery;
mod laws;
mod model;
mod mutant;
mod operator;
mod plan;
mod seen;
mod textbook;
mod world;

pub use attempt::End;
pub use client::Finding;
pub use delivery::Heard;
pub use laws::Law;
pub use model::Action;
pub use mutant::Mutant;
pub use operator::{Kept, Word};
pub use plan::Plan;
pub use seen::Seen;
pub use world::World;
