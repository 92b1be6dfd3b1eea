//! Locks: one holder at a time for a key, by a lease and with a fence.
//!
//! A lock is a record that is released instead of settled. It lives under a [key of its
//! own](Key::of_lock), so that a lock and a request with one key do not meet. The holder's lease is
//! renewed in the background; when it can not be, [`Lock::lost`] fires after 0.8 of the lease, and
//! after all of it the next one gets the lock, with a higher fence.
//!
//! # A lock is advice
//! A holder that is paused for longer than its lease (a stopped process, a long collection of
//! garbage in what it calls, a machine that sleeps) does not know that the lock has gone on to
//! somebody else, and no lock over a network can stop it. What it writes to can: it keeps the
//! highest [fence](Lock::fence) that it has seen, and refuses a smaller one. With SQL that is one
//! condition in the write itself:
//!
//! ```sql
//! UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//! ```
//!
//! Zero rows: a later holder was there; roll back. [`Fence::condition`] writes it for a column that
//! may be `NULL`. The attempt of an [idempotent](macro@crate::idempotent) function has a
//! [fence](crate::Attempt::fence) for the same use.
//!
//! Release after the commit, not before: between the two the next holder reads what was there
//! before you. And where the database can do it alone (a conditional update, a unique key), it
//! needs no lock.

mod guard;
mod held;
mod request;

pub use guard::LockGuard;
pub use held::Lock;
pub use request::LockRequest;

#[expect(unused_imports, reason = "named in the documentation above")]
use crate::{key::Key, record::Fence};
