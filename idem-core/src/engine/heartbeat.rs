//! Renewal of live attempts, batched per store.

mod appointments;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use self::appointments::Appointments;
use super::ask::Asked;
use super::core::Core;
use crate::attempt::{Attempt, Renewing};
use crate::driver;
use crate::record::RenewReply;

/// Live attempts, and when each wants attention.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats(Appointments<Pulse>);

#[derive(Debug)]
struct Pulse {
    attempt: Attempt,
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
        let pulse = Pulse {
            attempt: attempt.clone(),
            is_asked: false,
        };
        self.0.add(pulse, attempt.renew_at(), || {
            driver::spawn(beat(core.heartbeats.clone(), Arc::downgrade(core)));
        })
    }

    pub(crate) fn remove(&self, id: u64) {
        drop(self.0.remove(id));
    }

    /// Renews `attempt` no more, and waits for a renewal that is under way.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) async fn leave(&self, attempt: &Attempt) {
        let owner = attempt.inner().owner;
        let its = |id, pulse: &Pulse| (pulse.attempt.inner().owner == owner).then_some(id);
        for id in self.0.filter_map(its) {
            self.remove(id);
        }
        attempt.no_renewal().await;
    }

    /// Stops the bodies that run now. How many of them had not been told before.
    pub(crate) fn stop_bodies(&self) -> usize {
        let attempts = self.0.filter_map(|_, pulse| Some(pulse.attempt.clone()));
        attempts.iter().filter(|attempt| attempt.stop()).count()
    }

    /// Ends the task: there is no engine any more.
    pub(crate) fn end(&self) {
        self.0.wake();
    }

    /// The attempts that are due, each set to be asked again soon in case no answer comes, and
    /// when to look next.
    fn take_due(&self, now: Instant) -> (Vec<Due>, Option<Instant>) {
        let take = |id, pulse: &mut Pulse| (pulse.ask(id), pulse.ask_again_at(now));
        self.0.take_due(now, now + TOGETHER, take)
    }

    fn answered(&self, id: u64) {
        self.0.put_off(id, |pulse| {
            pulse.is_asked = false;
            pulse.attempt.renew_at()
        });
    }
}

impl Pulse {
    fn ask(&mut self, id: u64) -> Due {
        Due {
            id,
            attempt: self.attempt.clone(),
            is_repeat: std::mem::replace(&mut self.is_asked, true),
            _renewing: self.attempt.renewing(),
        }
    }

    /// When to ask again if no answer comes.
    fn ask_again_at(&self, now: Instant) -> Instant {
        let again = now + self.attempt.retry_pause();
        if self.attempt.can_be_lost() {
            // Not later than the moment at which it has to count itself lost.
            again.min(self.attempt.safe_until()).max(now)
        } else {
            again
        }
    }
}

/// The task. Should it panic, as what listens to events may, another one goes on.
struct Beating {
    heartbeats: Arc<Heartbeats>,
    core: Weak<Core>,
}

impl Drop for Beating {
    fn drop(&mut self) {
        let goes_on = self.core.strong_count() > 0;
        self.heartbeats.0.ended(goes_on, || {
            driver::spawn(beat(self.heartbeats.clone(), self.core.clone()));
        });
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
        heartbeats.0.sleep(next).await;
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
