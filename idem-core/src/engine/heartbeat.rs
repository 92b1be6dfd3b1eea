//! Renewal of live attempts, batched per store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::ask::Asked;
use super::core::Core;
use crate::attempt::{Attempt, Renewing};
use crate::driver;
use crate::record::RenewReply;

/// Live attempts, and when each wants attention.
///
/// As with the driver's alarms, an attempt that ends early leaves the task alone: it wakes when it
/// meant to and looks again.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats {
    live: Mutex<Live>,
    earlier: Notify,
}

#[derive(Debug, Default)]
struct Live {
    attempts: HashMap<u64, Pulse>,
    next_id: u64,
    /// When the task will look by itself.
    looks_at: Option<Instant>,
    is_running: bool,
}

#[derive(Debug)]
struct Pulse {
    attempt: Attempt,
    due: Instant,
    /// The last heartbeat has had no answer so far.
    is_asked: bool,
}

/// An attempt whose heartbeat is due.
#[derive(Clone)]
struct Due {
    id: u64,
    attempt: Attempt,
    is_repeat: bool,
    _renewing: Renewing,
}

/// What is due so soon goes along in one batch.
const TOGETHER: Duration = Duration::from_millis(50);

/// A store may renew one by one, and one key may hang: neither is to cost all others their leases.
const MOST_TOGETHER: usize = 32;

impl Heartbeats {
    /// Renews `attempt` until it is [removed](Self::remove) under the number given.
    pub(crate) fn add(&self, core: &Arc<Core>, attempt: &Attempt) -> u64 {
        let due = attempt.renew_at();
        let mut live = self.live();
        live.next_id += 1;
        let id = live.next_id;
        live.attempts.insert(
            id,
            Pulse {
                attempt: attempt.clone(),
                due,
                is_asked: false,
            },
        );
        let starts = !std::mem::replace(&mut live.is_running, true);
        let is_earlier = live.looks_at.is_none_or(|moment| due < moment);
        if is_earlier {
            live.looks_at = Some(due);
        }
        drop(live);
        if starts {
            driver::spawn(beat(core.heartbeats.clone(), Arc::downgrade(core)));
        } else if is_earlier {
            self.earlier.notify_one();
        }
        id
    }

    pub(crate) fn remove(&self, id: u64) {
        let removed = self.live().attempts.remove(&id);
        drop(removed);
    }

    /// Renews `attempt` no more, and waits for a renewal that is under way.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) async fn leave(&self, attempt: &Attempt) {
        let owner = attempt.inner().owner;
        let is_its = |_: &u64, pulse: &mut Pulse| pulse.attempt.inner().owner == owner;
        // Dropped outside the lock.
        let left: Vec<_> = self.live().attempts.extract_if(is_its).collect();
        drop(left);
        attempt.no_renewal().await;
    }

    /// Stops the bodies that run now. How many of them had not been told before.
    pub(crate) fn stop_bodies(&self) -> usize {
        let attempts: Vec<_> = self
            .live()
            .attempts
            .values()
            .map(|pulse| pulse.attempt.clone())
            .collect();
        attempts.iter().filter(|attempt| attempt.stop()).count()
    }

    /// Ends the task: there is no engine any more.
    pub(crate) fn end(&self) {
        self.earlier.notify_one();
    }

    /// The attempts that are due, each set to be asked again soon in case no answer comes, and
    /// when to look next.
    fn take_due(&self, now: Instant) -> (Vec<Due>, Option<Instant>) {
        let mut live = self.live();
        let is_time = live.attempts.values().any(|pulse| pulse.due <= now);
        let mut due = Vec::new();
        for (id, pulse) in &mut live.attempts {
            if is_time && pulse.due <= now + TOGETHER {
                due.push(Due {
                    id: *id,
                    attempt: pulse.attempt.clone(),
                    _renewing: pulse.attempt.renewing(),
                    is_repeat: std::mem::replace(&mut pulse.is_asked, true),
                });
                pulse.due = now + pulse.attempt.retry_pause();
                if pulse.attempt.can_be_lost() {
                    // Not later than the moment at which it has to count itself lost.
                    pulse.due = pulse.due.min(pulse.attempt.safe_until()).max(now);
                }
            }
        }
        live.looks_at = live.attempts.values().map(|pulse| pulse.due).min();
        (due, live.looks_at)
    }

    fn answered(&self, id: u64) {
        if let Some(pulse) = self.live().attempts.get_mut(&id) {
            pulse.due = pulse.attempt.renew_at();
            pulse.is_asked = false;
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task. Should it panic, as what listens to events may, another one goes on.
struct Beating {
    heartbeats: Arc<Heartbeats>,
    core: Weak<Core>,
}

impl Drop for Beating {
    fn drop(&mut self) {
        let mut live = self.heartbeats.live();
        live.looks_at = None;
        live.is_running = !live.attempts.is_empty() && self.core.strong_count() > 0;
        if live.is_running {
            drop(live);
            driver::spawn(beat(self.heartbeats.clone(), self.core.clone()));
        }
    }
}

async fn beat(heartbeats: Arc<Heartbeats>, core: Weak<Core>) {
    let _beating = Beating {
        heartbeats: heartbeats.clone(),
        core: core.clone(),
    };
    loop {
        let now = Instant::now();
        let (due, next) = heartbeats.take_due(now);
        let Some(core) = core.upgrade() else { return };
        // A lost attempt still asks: at hold its record is most likely its own.
        for due in due.iter().filter(|due| due.attempt.safe_until() <= now) {
            due.attempt.lose();
        }
        ask(&core, due);
        drop(core);
        let earlier = heartbeats.earlier.notified();
        if let Some(moment) = next {
            // The alarm is on this very thread, which is there.
            let _ = driver::by(moment, earlier).await;
        } else {
            earlier.await;
        }
    }
}

fn ask(core: &Arc<Core>, due: Vec<Due>) {
    let (again, first): (Vec<_>, Vec<_>) = due.into_iter().partition(|due| due.is_repeat);
    // Whoever got no answer asks alone: it may have been somebody else's key that hung.
    for batch in first.chunks(MOST_TOGETHER).chain(again.chunks(1)) {
        driver::spawn(renew(core.clone(), batch.to_vec()));
    }
}

async fn renew(core: Arc<Core>, batch: Vec<Due>) {
    let limit = core.times.limit;
    let sent = Instant::now();
    let Some(not_after) = core.clock.not_after(sent, limit) else {
        return;
    };
    let operations: Vec<_> = batch
        .iter()
        .map(|Due { attempt, .. }| {
            let mut renewal = attempt.renewal(false);
            renewal.not_after = not_after;
            (attempt.inner().store_key.clone(), renewal)
        })
        .collect();
    let answers = driver::by(sent + limit, core.store.renew_all(&operations)).await;
    let Ok(Some(answers)) = answers else {
        tracing::warn!(attempts = batch.len(), "heartbeats got no answer");
        return;
    };
    for (Due { id, attempt, .. }, answer) in batch.iter().zip(answers) {
        match answer {
            Ok(answer) => {
                core.clock.hear(answer.now);
                let asked = Asked {
                    reply: answer.reply,
                    now: answer.now,
                    sent,
                };
                attempt.hear_renewal(&asked, false);
                if matches!(asked.reply, RenewReply::Renewed { .. }) {
                    core.heartbeats.answered(*id);
                }
            }
            Err(error) => {
                tracing::warn!(key = ?attempt.inner().store_key, %error, "a heartbeat failed");
            }
        }
    }
}
