//! Run a service function once.

pub mod codec;
pub mod error;
pub mod fingerprint;
pub mod key;
pub mod policy;
pub mod record;
pub mod store;

pub use error::{Error, StoreError, StoreErrorKind};
pub use fingerprint::Fingerprint;
pub use key::{Key, KeyPart, KeyWriter};
pub use policy::{OnError, Policy};
pub use store::MemoryStore;
