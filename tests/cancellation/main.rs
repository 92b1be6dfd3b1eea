//! Every call, dropped after each of its polls: no key stuck, no second effect, no panic, nothing
//! left behind.
//!
//! The store gives way once before and once after each of its calls, so that each is cut where it
//! has not begun, where it was done and nobody has heard of it, and where it was heard of. What
//! only one moment can show is in `tests/engine/cancellation.rs`; transaction mode, where a drop is
//! a rollback, in `tests/transaction/half.rs`; transitions and `insert_or_get`, which have no engine,
//! in `tests/schemes`.

mod consumer;
mod control;
mod detached;
mod drain;
mod duplicates;
mod first;
mod ground;
mod locks;
mod operators;
mod recover;
mod scene;
mod settle_in;
mod sweep;
mod tables;
mod takeovers;
mod tokens;
mod troubled;
mod waiting;
