//! Run a service function once.

pub mod error;
pub mod fingerprint;
pub mod key;
pub mod record;
pub mod store;

pub use error::{Error, StoreError, StoreErrorKind};
pub use fingerprint::Fingerprint;
pub use key::Key;
