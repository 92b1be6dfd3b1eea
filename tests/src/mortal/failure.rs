//! How a body says that it has failed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The word of a body that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// In which process.
    pub process: u32,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body in process {} has failed", self.process)
    }
}

impl std::error::Error for Failed {}

/// Why a call has no result. Only the word of a body can be stored.
#[derive(Serialize, Deserialize)]
pub(super) enum Failure {
    Said(Failed),
    #[serde(skip)]
    Other(anyhow::Error),
}

impl Failure {
    pub(super) fn into_error(self) -> anyhow::Error {
        match self {
            Self::Said(failed) => failed.into(),
            Self::Other(error) => error,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Failed>() {
            Ok(failed) => Self::Said(failed),
            Err(error) => Self::Other(error),
        }
    }
}

impl From<idem_core::Error> for Failure {
    fn from(error: idem_core::Error) -> Self {
        Self::Other(error.into())
    }
}
