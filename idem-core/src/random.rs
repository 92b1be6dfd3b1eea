//! Random bits of the operating system, for what nobody may guess.

use crate::error::{StoreError, StoreErrorKind};

/// 128 of them.
pub(crate) fn bits() -> Result<[u8; 16], StoreError> {
    let mut bytes = [0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "the operating system gave no random bytes",
        )
        .with_source(error)),
    }
}
