//! The attribute over real processes, a real Redis and real faults: what was promised is counted
//! in a ledger that no record knows of.

mod death;
mod faults;
mod ledger;
mod leftovers;
mod payer;
mod recovery;
mod scene;
mod storm;
mod topology;
mod waiting;
