//! Waiting for a live attempt elsewhere: one store wait per key and process, however many wait.

mod board;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use self::board::Board;
use super::core::Core;
use crate::driver;
use crate::record::{Fence, Slot, State};
use crate::store::{StoreKey, Watch};

/// The keys on which somebody in this process waits.
pub(crate) type Waits = Board<StoreKey>;

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
        let mut waiter = Self(begin(core, key, lease));
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

/// Joins the store wait of `key`, or begins it.
fn begin(core: &Arc<Core>, key: &StoreKey, lease: Duration) -> watch::Receiver<u64> {
    let (changes, first) = core.waits.join(key);
    if let Some(sender) = first {
        let pause = (lease / 3).min(LONGEST_PAUSE);
        let attendance = Attendance {
            core: core.clone(),
            key: key.clone(),
            sender,
        };
        driver::spawn(attend(attendance, pause));
    }
    changes
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
