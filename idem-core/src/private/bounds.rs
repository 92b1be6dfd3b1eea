//! What an annotated function's types must be able to do, asked for at the place where the user
//! wrote them.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// A `Result`, perhaps behind an alias.
#[diagnostic::on_unimplemented(
    message = "`#[idempotent]` needs a function that returns a `Result`, so that a refusal can be told",
    label = "`{Self}` is no `Result<T, E>`"
)]
pub trait Returned {
    /// What success gives.
    type Value;
    /// What failure gives.
    type Error;
}

impl<T, E> Returned for Result<T, E> {
    type Value = T;
    type Error = E;
}

/// Asks for a `Result`.
pub const fn need_result<R: Returned>() {}

/// Asks for an error that can say why a call was refused.
pub const fn need_error<E: From<Error>>() {}

/// Asks for a value that can be stored and given to duplicates.
pub const fn need_storable<T: Serialize + DeserializeOwned>() {}

/// Asks for an error that can be stored and given to duplicates.
pub const fn need_storable_error<E: Serialize + DeserializeOwned>() {}
