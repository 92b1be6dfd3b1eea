//! What waits and what wakes, on [shuttle](https://docs.rs/shuttle).
//!
//! The files of `idem-core` are built here once more, by their text: `crate::primitives` is another
//! one here, whose locks and moments belong to a scheduler. It draws which thread goes on wherever
//! one takes or gives back a lock, reads the clock, or uses a notification. A thread that nobody
//! wakes is a deadlock, and fails.
//!
//! Every file is built with one mistake at a time as well; the scene has to fail then.

#![allow(
    clippy::duplicate_mod,
    reason = "a scene is built for each version of its file"
)]

mod primitives;

/// The module, which version of it, whether that has no mistake, and one run of its scene.
pub type Scene = (&'static str, &'static str, bool, fn());

include!(concat!(env!("OUT_DIR"), "/variants.rs"));
