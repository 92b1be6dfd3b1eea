//! Run a service function once per business request.
//!
//! ```
//! use idem_core::{Error, Idempotency, idempotent};
//!
//! struct PayRequest {
//!     order_no: String,
//! }
//!
//! #[idempotent(prefix = "order:pay", key = "request.order_no", expire = "7d")]
//! async fn pay(request: PayRequest) -> Result<String, Error> {
//!     Ok(format!("paid {}", request.order_no))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! Idempotency::memory().install()?;
//! let first = pay(PayRequest { order_no: "A-1".into() }).await?;
//! let again = pay(PayRequest { order_no: "A-1".into() }).await?; // not run: replayed
//! assert_eq!(first, again);
//! # Ok(())
//! # }
//! ```
//!
//! - [`idempotent`] writes the guard around an `async fn`; [`Idempotency::run`] is its form for
//!   programs.
//! - [`Idempotency`] is an engine over a [`store`]: memory, Redis, or your own.
//! - [`Attempt`] is what a body can know about its own run: key, fence, checkpoint, loss.
//! - [`consumer`] says what becomes of a message after a guarded call, for any broker.
//! - [`Tokens`] are issued to somebody and used once: the key of a form.
//! - [`Idempotency::lock`] is a lease-based lock with a fence, for what is not one request.
//! - [`Error`] says why a body did not run, and what to do next.
//! - [`States`](trait@States) are those of a business object, and which of them may follow which.
//! - [`record`] is the specification: one pure function that every store keeps.
//!
//! # Features
//! `redis` and `uuid` (both by default; a `Uuid` in a key), `tls` for `rediss://`, `postgres`, `mysql` and
//! `sqlite` for records in a database, and `conformance` for the laws that every store keeps.

pub mod attempt;
pub mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod consumer;
mod driver;
pub mod engine;
pub mod error;
pub mod fingerprint;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod key;
pub mod lock;
mod macros;
pub mod observe;
pub mod policy;
mod primitives;
#[doc(hidden)]
pub mod private;
mod random;
pub mod record;
pub mod results;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub mod sql;
pub mod states;
pub mod store;
pub mod token;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub mod transaction;

#[doc(inline)]
pub use attempt::Attempt;
#[doc(inline)]
pub use engine::{Changes, Done, Idempotency, NotDone, Recovered, Tokens};
#[doc(inline)]
pub use error::{Error, StoreError, StoreErrorKind};
#[doc(inline)]
pub use fingerprint::Fingerprint;
#[doc(inline)]
pub use key::{Key, KeyPart, KeyWriter};
pub use lock::{Lock, LockGuard};
pub use macros::{KeyPart, States, idempotent, locked};
#[doc(inline)]
pub use observe::{Outcome, observe};
#[doc(inline)]
pub use policy::{OnError, Policy};
#[doc(hidden)]
pub use private as __private;
#[doc(inline)]
pub use results::Results;
#[doc(inline)]
pub use states::States;
#[doc(inline)]
pub use store::MemoryStore;
#[cfg(feature = "redis")]
#[doc(inline)]
pub use store::RedisStore;
#[doc(inline)]
pub use token::{AsToken, Token};
