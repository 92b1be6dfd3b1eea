//! The live list of records.

use std::cmp::Reverse;
use std::time::Duration;

use idem_core::engine::RecordView;
use idem_core::record::Status;
use idem_core::{Error, Idempotency};
use serde::Serialize;

/// One record, for the page.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The key, without the namespace.
    pub key: String,
    /// `processing`, `abandoned`, `success`, `failed`, …
    pub status: &'static str,
    /// The last attempt's number.
    pub attempt: u32,
    /// How long ago it was granted or ended.
    pub age_ms: u64,
    /// What is left of its lease, if it is processing.
    pub lease_left_ms: Option<u64>,
    /// When the store drops the record.
    pub expires_in_ms: u64,
}

/// The youngest records of this service, youngest first, wherever they are kept.
///
/// It reads all there are, which is fine for an example and not for a million.
///
/// # Errors
/// [`Error::Store`] if a store gave no answer.
pub async fn youngest(everywhere: &[Idempotency], count: usize) -> Result<Vec<Line>, Error> {
    let mut views = Vec::new();
    for idem in everywhere {
        views.extend(idem.records("order:").await?);
    }
    // Two clocks: only ages can be compared.
    views.sort_by_key(|view| (view.age, Reverse(view.fence)));
    views.truncate(count);
    Ok(views.into_iter().map(line).collect())
}

fn line(view: RecordView) -> Line {
    Line {
        status: status(&view),
        lease_left_ms: view.running.map(|running| millis(running.lease_left)),
        age_ms: millis(view.age),
        expires_in_ms: millis(view.expires_in),
        attempt: view.attempt,
        key: view.key,
    }
}

fn status(view: &RecordView) -> &'static str {
    match view.status {
        Status::Processing if view.running.is_some_and(|running| running.is_abandoned) => {
            "abandoned"
        }
        Status::Processing => "processing",
        Status::Success => "success",
        Status::Failed => "failed",
        Status::Issued => "issued",
        Status::Refused => "refused",
        Status::Damaged => "damaged",
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
