//! Waiting for a live attempt elsewhere: one store wait per key and process, however many wait.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::core::Core;
use crate::driver;
use crate::record::{Fence, Slot, State};
use crate::store::{StoreKey, Watch};

/// The keys on which somebody in this process waits.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<HashMap<StoreKey, watch::Sender<u64>>>);

/// A place among those who wait for one key.
#[derive(Debug)]
pub(crate) struct Waiter(watch::Receiver<u64>);

/// The longest pause between two looks at a record whose end may have been pushed past us.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Waiter {
    /// Joins those who wait for `key`; returns when no later end is missed, or at `until`.
    pub(crate) async fn join(
        core: &Arc<Core>,
        key: &StoreKey,
        lease: Duration,
        until: Instant,
    ) -> Self {
        let mut waiter = Self(core.waits.join(core, key, lease));
        while *waiter.0.borrow_and_update() == 0 {
            if !matches!(
                driver::by(until, waiter.0.changed()).await,
                Ok(Some(Ok(())))
            ) {
                break;
            }
        }
        waiter
    }

    /// Waits for the next sign of a change since the last call, at most until `until`.
    pub(crate) async fn changed(&mut self, until: Instant) {
        if let Ok(Some(Err(_))) = driver::by(until, self.0.changed()).await {
            // Nobody watches any more: the caller looks for itself, at its own moments.
            let _ = driver::sleep_until(until).await;
        }
    }
}

impl Waits {
    /// Whether somebody waits for one of these keys.
    pub(crate) fn has_any(&self, keys: &[StoreKey]) -> bool {
        let waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().any(|key| waits.contains_key(key))
    }

    fn join(&self, core: &Arc<Core>, key: &StoreKey, lease: Duration) -> watch::Receiver<u64> {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match waits.entry(key.clone()) {
            Entry::Occupied(wait) => wait.get().subscribe(),
            Entry::Vacant(place) => {
                let (sender, receiver) = watch::channel(0);
                place.insert(sender.clone());
                let pause = (lease / 3).min(LONGEST_PAUSE);
                let attendance = Attendance {
                    core: core.clone(),
                    key: key.clone(),
                    sender,
                };
                driver::spawn(attend(attendance, pause));
                receiver
            }
        }
    }

    /// Takes the key away if nobody waits for it any more.
    fn leave(&self, key: &StoreKey, sender: &watch::Sender<u64>) -> bool {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nobody = sender.receiver_count() == 0;
        if nobody {
            waits.remove(key);
        }
        nobody
    }

    /// Takes the key away from those who wait for it: nobody tells them anything any more.
    fn give_up(&self, key: &StoreKey, sender: &watch::Sender<u64>) {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let given_up = match waits.entry(key.clone()) {
            Entry::Occupied(wait) if wait.get().same_channel(sender) => Some(wait.remove()),
            _ => None,
        };
        drop(waits);
        drop(given_up);
    }
}

/// The store wait of one key. However it ends, the next one who waits begins another.
struct Attendance {
    core: Arc<Core>,
    key: StoreKey,
    sender: watch::Sender<u64>,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.core.waits.give_up(&self.key, &self.sender);
    }
}

/// Tells those who wait for `key` about each change, until nobody does.
async fn attend(attendance: Attendance, pause: Duration) {
    let Attendance { core, key, sender } = &attendance;
    let subscribed = core.within_limit(core.store.watch(key)).await;
    let mut pushed = subscribed.unwrap_or_else(|error| {
        tracing::debug!(?key, %error, "no push; looking now and then instead");
        Watch::never()
    });
    sender.send_modify(|changes| *changes += 1);
    let mut seen = None;
    loop {
        tokio::select! {
            () = sender.closed() => {
                if core.waits.leave(key, sender) {
                    return;
                }
            }
            () = pushed.changed() => sender.send_modify(|changes| *changes += 1),
            () = tokio::time::sleep(pause) => {
                if let Ok(answer) = core.within_limit(core.store.peek(key)).await {
                    core.clock.hear(answer.now);
                    let live = live_attempt(&answer.reply, answer.now);
                    if live.is_none() || seen.is_some_and(|seen| Some(seen) != live) {
                        sender.send_modify(|changes| *changes += 1);
                    }
                    seen = live;
                }
            }
        }
    }
}

fn live_attempt(slot: &Slot, now: crate::record::StoreTime) -> Option<Fence> {
    match slot {
        Slot::Record(record) => match &record.state {
            State::Processing(attempt) if !attempt.lease_until.has_passed(now) => {
                Some(record.fence)
            }
            _ => None,
        },
        Slot::Absent | Slot::Damaged => None,
    }
}
