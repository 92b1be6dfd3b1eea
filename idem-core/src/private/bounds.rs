//! What an annotated function's types must be able to do, asked for once and where the user wrote
//! them: generated code names them here, and nothing after it asks again.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::results::Results;

/// A `Result`, perhaps behind an alias.
#[diagnostic::on_unimplemented(
    message = "a guarded function has to return a `Result`, so that a refusal can be told",
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

/// What `?` in a path can open.
#[diagnostic::on_unimplemented(
    message = "`?` in a path needs an `Option`",
    label = "this is a `{Self}`, not an `Option`"
)]
pub trait Optional {
    /// What it holds, if anything.
    type Inner;

    /// The value that is there.
    fn present(&self) -> Option<&Self::Inner>;
}

impl<T> Optional for Option<T> {
    type Inner = T;

    fn present(&self) -> Option<&T> {
        self.as_ref()
    }
}

impl<O: Optional> Optional for &O {
    type Inner = O::Inner;

    fn present(&self) -> Option<&O::Inner> {
        O::present(self)
    }
}

/// Opens an option in a path.
pub fn present<O: Optional>(option: &O) -> Option<&O::Inner> {
    option.present()
}

/// A value that can be stored and given to duplicates.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not be stored and given to duplicates",
    label = "this type needs `serde::Serialize` and `serde::Deserialize`",
    note = "derive both: `#[derive(Serialize, Deserialize)]`",
    note = "or return what it holds, such as the `T` of an `axum::Json<T>`, and let the caller wrap it",
    note = "or store no result: `on_duplicate = \"reject\"` answers duplicates with `Error::Duplicate`"
)]
pub trait Storable: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Storable for T {}

/// An error that can be stored and given to duplicates.
#[diagnostic::on_unimplemented(
    message = "the error `{Self}` can not be stored and given to duplicates",
    label = "this type needs `serde::Serialize` and `serde::Deserialize`",
    note = "derive both, or let errors mean something else: `on_error = \"fail\"`, `\"release\"` or `\"abandon\"`"
)]
pub trait StorableError: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<E: Serialize + DeserializeOwned> StorableError for E {}

/// An error that can say why a call was refused.
#[diagnostic::on_unimplemented(
    message = "the error `{Self}` can not say why a call was refused",
    label = "this type needs `From<idem_core::Error>`",
    note = "with thiserror: `#[error(transparent)] Idem(#[from] idem_core::Error)`; `anyhow::Error` has it"
)]
pub trait Refusal: From<Error> {}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> Refusal for E {}

/// Results that are stored and given to duplicates.
pub fn stored<T: Storable, E: Refusal>() -> Results<T, E> {
    Results::stored()
}

/// Results that only the first caller gets.
pub const fn unstored<T, E: Refusal>() -> Results<T, E> {
    Results::unstored()
}

/// The same, with errors stored too.
pub fn replay_errors<T, E: StorableError>(results: Results<T, E>) -> Results<T, E> {
    results.replay_errors()
}
