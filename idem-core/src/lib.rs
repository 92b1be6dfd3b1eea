//! Run a service function once.

pub mod attempt;
pub mod codec;
mod driver;
pub mod engine;
pub mod error;
pub mod fingerprint;
pub mod key;
pub mod observe;
pub mod policy;
#[doc(hidden)]
pub mod private;
pub mod record;
pub mod results;
pub mod store;

pub use attempt::Attempt;
pub use engine::{Changes, Done, Idempotency, NotDone, Recovered};
pub use error::{Error, StoreError, StoreErrorKind};
pub use fingerprint::Fingerprint;
pub use idem_macros::{KeyPart, idempotent};
pub use key::{Key, KeyPart, KeyWriter};
pub use observe::{Outcome, observe};
pub use policy::{OnError, Policy};
#[doc(hidden)]
pub use private as __private;
pub use results::Results;
pub use store::MemoryStore;
#[cfg(feature = "redis")]
pub use store::RedisStore;
