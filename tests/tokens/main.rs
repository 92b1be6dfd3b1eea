//! One-time tokens, on every store: who may use one, how often, and what a wrong one is told.

mod answers;
mod attribute;
mod handed_back;
mod issued;
mod losses;
mod rig;
mod round_trips;
mod secrecy;
mod used_once;
