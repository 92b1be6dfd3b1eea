//! How one function's results travel: which are stored, by which codec, and what its errors mean.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{Codec, CodecError, Json};
use crate::error::Error;
use crate::observe::{self, Outcome};
use crate::policy::OnError;

/// How the results of one function travel.
///
/// # Examples
/// ```
/// use idem_core::{OnError, Results};
///
/// #[derive(Debug)]
/// enum PayError { Declined, TimedOut, Idem(idem_core::Error) }
///
/// impl From<idem_core::Error> for PayError {
///     fn from(error: idem_core::Error) -> Self {
///         Self::Idem(error)
///     }
/// }
///
/// let results = Results::<String, PayError>::stored().classify(|error| match error {
///     PayError::Declined => OnError::Fail,
///     _ => OnError::Abandon,
/// });
/// # let _ = results;
/// ```
#[must_use]
pub struct Results<T, E> {
    values: Option<Coded<T>>,
    errors: Option<Coded<E>>,
    on_error: Meaning<E>,
    refuse: fn(Error) -> E,
}

struct Coded<V> {
    encode: fn(&V) -> Result<Vec<u8>, CodecError>,
    decode: fn(&[u8]) -> Result<V, CodecError>,
}

enum Meaning<E> {
    Always(OnError),
    By(fn(&E) -> OnError),
}

impl<V> Clone for Coded<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Coded<V> {}

impl<E> Clone for Meaning<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Meaning<E> {}

impl<T, E> Clone for Results<T, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, E> Copy for Results<T, E> {}

impl<T, E> fmt::Debug for Results<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results")
            .field("stored", &self.values.is_some())
            .field("errors_stored", &self.errors.is_some())
            .finish_non_exhaustive()
    }
}

impl<V: Serialize + DeserializeOwned> Coded<V> {
    fn with<C: Codec>() -> Self {
        Self {
            encode: C::encode::<V>,
            decode: C::decode::<V>,
        }
    }
}

impl<T, E: From<Error>> Results<T, E> {
    /// Results are stored as JSON, and replayed: as serde writes and reads them, without what a type
    /// skips or masks.
    pub fn stored() -> Self
    where
        T: Serialize + DeserializeOwned,
    {
        Self::stored_by::<Json>()
    }

    /// Results are stored by the codec `C`, and replayed.
    pub fn stored_by<C: Codec>() -> Self
    where
        T: Serialize + DeserializeOwned,
    {
        Self {
            values: Some(Coded::with::<C>()),
            ..Self::unstored()
        }
    }

    /// Results are not stored; the type needs nothing.
    pub const fn unstored() -> Self {
        Self {
            values: None,
            errors: None,
            on_error: Meaning::Always(OnError::Fail),
            refuse: E::from,
        }
    }
}

impl<T, E> Results<T, E> {
    /// What every error of the body means.
    pub const fn on_error(mut self, meaning: OnError) -> Self {
        self.on_error = Meaning::Always(meaning);
        self
    }

    /// What an error of the body means, by its value.
    pub const fn classify(mut self, meaning: fn(&E) -> OnError) -> Self {
        self.on_error = Meaning::By(meaning);
        self
    }

    /// Errors that mean [`OnError::Replay`] are stored as JSON, and replayed.
    pub fn replay_errors(mut self) -> Self
    where
        E: Serialize + DeserializeOwned,
    {
        self.errors = Some(Coded::with::<Json>());
        self
    }

    /// Says why the call was refused, in the function's own error. The conversion is kept here so
    /// that the bound is asked for once, where the types are written.
    pub(crate) fn refuse(&self, error: Error) -> E {
        (self.refuse)(error)
    }

    /// [`refuse`](Self::refuse), also told to whoever observes.
    pub(crate) fn refused(&self, error: Error) -> E {
        observe::report(Outcome::Refused);
        self.refuse(error)
    }

    /// Whether an error may have to be stored.
    pub(crate) fn keeps_errors(&self) -> bool {
        self.errors.is_some()
    }

    pub(crate) fn encode(&self, value: &T) -> Option<Result<Bytes, CodecError>> {
        self.values
            .map(|coded| (coded.encode)(value).map(Bytes::from))
    }

    pub(crate) fn decode(&self, bytes: &[u8]) -> Result<T, Cow<'static, str>> {
        decode(self.values, bytes, "this function does not replay results")
    }

    pub(crate) fn encode_error(&self, error: &E) -> Option<Result<Bytes, CodecError>> {
        self.errors
            .map(|coded| (coded.encode)(error).map(Bytes::from))
    }

    pub(crate) fn decode_error(&self, bytes: &[u8]) -> Result<E, Cow<'static, str>> {
        decode(self.errors, bytes, "this function does not replay errors")
    }

    pub(crate) fn meaning(&self, error: &E) -> OnError {
        match self.on_error {
            Meaning::Always(meaning) => meaning,
            Meaning::By(meaning) => meaning(error),
        }
    }
}

fn decode<V>(
    coded: Option<Coded<V>>,
    bytes: &[u8],
    without: &'static str,
) -> Result<V, Cow<'static, str>> {
    let coded = coded.ok_or(Cow::Borrowed(without))?;
    (coded.decode)(bytes).map_err(|error| Cow::Owned(error.to_string()))
}
