//! The records of one shard, with the two orders in which they can leave.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::record::{Record, Slot, State, StoreTime};

type KeyText = Arc<str>;

/// Records by key. Sorted, so that a scan can go on where it stopped, whatever came and went.
#[derive(Default)]
pub(super) struct Records {
    /// Never holds [`Slot::Absent`].
    slots: BTreeMap<KeyText, Slot>,
    by_deadline: BTreeSet<(StoreTime, KeyText)>,
    by_finish: BTreeSet<(StoreTime, KeyText)>,
}

impl Records {
    pub(super) fn get(&self, key: &str) -> Slot {
        self.slots.get(key).cloned().unwrap_or(Slot::Absent)
    }

    /// Writes what stands at `key` from now on; returns whether a record went away by that.
    pub(super) fn put(&mut self, key: &KeyText, slot: Slot) -> bool {
        let after = (deadline(&slot), finish(&slot));
        let is_held = slot != Slot::Absent;
        let previous = match slot {
            Slot::Absent => self.slots.remove(key),
            slot => self.slots.insert(key.clone(), slot),
        };
        let was_held = previous.is_some();
        let previous = previous.unwrap_or(Slot::Absent);
        reorder(&mut self.by_deadline, key, deadline(&previous), after.0);
        reorder(&mut self.by_finish, key, finish(&previous), after.1);
        was_held && !is_held
    }

    /// Drops records that have expired, at most `at_most` of them; returns how many.
    pub(super) fn drop_expired(&mut self, now: StoreTime, at_most: usize) -> usize {
        let mut dropped = 0;
        while dropped < at_most {
            match self.by_deadline.first() {
                Some((deadline, key)) if deadline.has_passed(now) => {
                    let key = key.clone();
                    self.put(&key, Slot::Absent);
                    dropped += 1;
                }
                _ => break,
            }
        }
        dropped
    }

    /// When the record that finished first did so.
    pub(super) fn oldest_finish(&self) -> Option<StoreTime> {
        self.by_finish.first().map(|(at, _)| *at)
    }

    /// Drops the record that finished first; returns whether there was one.
    pub(super) fn drop_oldest_finished(&mut self) -> bool {
        let oldest = self.by_finish.first().map(|(_, key)| key.clone());
        if let Some(key) = &oldest {
            self.put(key, Slot::Absent);
        }
        oldest.is_some()
    }

    /// The records whose keys begin with `prefix` and stand behind `after`, in order.
    pub(super) fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&'a KeyText, &'a Slot)> {
        let begin = match after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix),
        };
        self.slots
            .range::<str, _>((begin, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }
}

fn deadline(slot: &Slot) -> Option<StoreTime> {
    match slot {
        Slot::Record(record) => Some(record.expires_at),
        Slot::Absent | Slot::Damaged => None,
    }
}

/// When a record was finished, if it was. A refusal or a closed mark is no finished work: each
/// keeps somebody from running, and goes only when its time has come.
fn finish(slot: &Slot) -> Option<StoreTime> {
    match slot {
        Slot::Record(Record {
            state: State::Success { at, .. } | State::Failed { at, .. },
            ..
        }) => Some(*at),
        _ => None,
    }
}

fn reorder(
    order: &mut BTreeSet<(StoreTime, KeyText)>,
    key: &KeyText,
    before: Option<StoreTime>,
    after: Option<StoreTime>,
) {
    if before == after {
        return;
    }
    if let Some(before) = before {
        order.remove(&(before, key.clone()));
    }
    if let Some(after) = after {
        order.insert((after, key.clone()));
    }
}
