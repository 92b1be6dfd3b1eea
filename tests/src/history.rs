//! What processes saw of one key, written down by all of them in one order, and whether it keeps
//! the promises: the binary `caller` writes such histories, the suite `histories` judges them.

use std::time::Duration;

/// The lease of the functions that `caller` guards: the shortest that is allowed.
pub const LEASE: Duration = Duration::from_secs(1);

mod event;
mod journal;
mod judge;
mod known;
mod laws;
mod locks;

pub use event::{Answer, End, Event, Finding, What};
pub use journal::{CALLS_PER_WORKER, Journal, SWEEPER, keys, now, operations, read};
pub use judge::{Broken, Law, Level, Span, Terms, Verdict, judge};
