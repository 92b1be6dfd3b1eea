//! Locks: who holds one, who is told that it was lost, and what is left behind.

use idem_tests::rig;

mod attribute;
mod commit;
mod ends;
mod exclusion;
mod fences;
mod loss;
mod names;
mod paused;
mod postgres;
mod redis;
mod runtimes;
mod scene;
mod stacked;
mod waiting;
