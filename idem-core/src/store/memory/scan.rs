//! Reading records page by page.

use super::{Clock, MemoryStore, lock};
use crate::error::{StoreError, StoreErrorKind};
use crate::record::Slot;
use crate::store::{Answer, Cursor, Page, Scan};

impl<C: Clock> MemoryStore<C> {
    /// Reads on from `place` until the page is full or the records end.
    pub(super) fn page(&self, scan: &Scan, place: Place<'_>) -> Answer<Page> {
        let now = self.clock.now();
        let mut left = scan.page_size.max(1) as usize;
        let mut entries = Vec::new();
        let mut after = place.after;
        for (index, shard) in self.shards.iter().enumerate().skip(place.shard) {
            let records = lock(&shard.records);
            for (key, slot) in records.range(&scan.prefix, after.take()) {
                let slot = slot.clone().visible(now);
                if slot != Slot::Absent {
                    entries.push((key.to_string(), slot));
                }
                left -= 1;
                if left == 0 {
                    let next = Some(Place::cursor(index, key));
                    return Answer {
                        now,
                        reply: Page { entries, next },
                    };
                }
            }
        }
        Answer {
            now,
            reply: Page {
                entries,
                next: None,
            },
        }
    }
}

/// Where a scan goes on: behind a key of one shard.
#[derive(Clone, Copy, Default)]
pub(super) struct Place<'a> {
    shard: usize,
    after: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn cursor(shard: usize, key: &str) -> Cursor {
        Cursor(format!("{shard} {key}"))
    }

    pub(super) fn of(cursor: Option<&'a Cursor>) -> Result<Self, StoreError> {
        let Some(Cursor(text)) = cursor else {
            return Ok(Self::default());
        };
        text.split_once(' ')
            .and_then(|(shard, key)| Some((shard.parse().ok()?, key)))
            .map(|(shard, key)| Self {
                shard,
                after: Some(key),
            })
            .ok_or_else(|| {
                let detail =
                    format!("{text:?} is no cursor of a memory store; begin the scan without one");
                StoreError::new(StoreErrorKind::Protocol, detail)
            })
    }
}
