//! The lock on the key `A`.

use idem_core::engine::RecordView;
use idem_core::lock::LockRequest;
use idem_core::{Error, LockGuard};

use crate::rig::{LEASE, Rig, key, until};

pub(crate) fn lock(rig: &Rig) -> LockRequest {
    rig.idem.lock(key()).lease(LEASE)
}

pub(crate) async fn held(rig: &Rig) -> LockGuard {
    lock(rig).acquire().await.unwrap()
}

pub(crate) async fn record(rig: &Rig) -> Option<RecordView> {
    rig.idem.peek(&key().of_lock()).await.unwrap()
}

pub(crate) async fn until_free(rig: &Rig) {
    until("the lock is free", async || record(rig).await.is_none()).await;
}

pub(crate) fn is_held<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::InProgress { .. }))
}

pub(crate) fn is_lost<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::LeaseLost { .. }))
}
