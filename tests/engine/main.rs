//! The engine over a faulty store: what every caller hears, what becomes of every record, and what
//! goes on behind a call.

mod cancellation;
mod chaos;
mod checkpoint;
mod claim;
mod concurrency;
mod drain;
mod engines;
mod lease;
mod lost;
mod observing;
mod panics;
mod recover;
mod refuse;
mod results;
use idem_tests::rig;
mod runtimes;
mod saying;
mod settle;
mod superseded;
mod waiting;
