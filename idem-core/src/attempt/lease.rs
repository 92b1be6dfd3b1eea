//! How long an attempt may take itself for the owner of its record.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Attempt;
use crate::engine::ask::Asked;
use crate::engine::core::Counters;
use crate::record::{Echo, OnAbandoned, Outcome, Renew, RenewReply, Settle, StoreTime};

/// What the owner knows of its record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    /// The store's time in the last answer.
    pub(super) answered: StoreTime,
    /// When the request of that answer was sent: the lease counts from here.
    pub(super) sent: Instant,
    pub(super) checkpoint: bool,
}

/// The part of a lease after which a silent attempt counts itself lost.
const SAFE_PART: f64 = 0.8;

/// Between two heartbeats of one attempt: a lease too short to be kept does not keep the one
/// background thread from everybody else.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl Attempt {
    /// Whether [`lose`](Self::lose) has yet to be said. Not of an attempt that has ended: its lease
    /// may run out while it is being settled, and the answer to a heartbeat that was under way then
    /// says nothing.
    pub(crate) fn can_be_lost(&self) -> bool {
        !self.is_lost()
    }

    /// Returns when the body has to go: the record was lost and somebody else may get it.
    pub(crate) async fn must_stop(&self) {
        let is_told = || self.0.stop.load(Ordering::SeqCst);
        self.0.signal.until(is_told).await;
    }

    /// Counts the record as lost. At hold, past the checkpoint, nobody else can get the key, so
    /// the body may finish, and under a lock it decides itself; otherwise it has to go.
    pub(crate) fn lose(&self) {
        if !self.can_be_lost() || self.0.lost.swap(true, Ordering::SeqCst) {
            return;
        }
        Counters::add(&self.0.core.counters.lease_lost);
        let settings = &self.0.settings;
        let nobody_else_can_have_it = settings.on_abandoned == OnAbandoned::Hold
            && self.lease().checkpoint
            && !settings.recover;
        if !nobody_else_can_have_it && !self.0.key.is_lock() {
            self.0.stop.store(true, Ordering::SeqCst);
        }
        self.0.signal.say();
        // Last: what listens to events may panic.
        tracing::error!(key = ?self.0.store_key, "an attempt lost its lease");
    }

    /// A renewal is under way until what this gives is dropped.
    pub(crate) fn renewing(&self) -> Renewing {
        self.0.renewals.fetch_add(1, Ordering::SeqCst);
        Renewing(self.clone())
    }

    /// Returns when no renewal is under way.
    pub(crate) async fn no_renewal(&self) {
        let is_none = || self.0.renewals.load(Ordering::SeqCst) == 0;
        self.0.signal.until(is_none).await;
    }

    /// Ends the body, whatever the policy says: the process goes down. `false` if it has ended, or
    /// has been told.
    pub(crate) fn stop(&self) -> bool {
        if self.0.ended.load(Ordering::SeqCst) || self.0.stop.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.0.lost.store(true, Ordering::SeqCst);
        self.0.signal.say();
        true
    }

    /// The body has ended; what becomes of its lease does not matter any more, but to what it has
    /// left running.
    pub(crate) fn end(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
        self.0.signal.say();
    }

    /// After this moment a silent attempt counts itself lost.
    pub(crate) fn safe_until(&self) -> Instant {
        self.lease().sent + self.0.settings.terms.lease.mul_f64(SAFE_PART)
    }

    /// Whether nobody else can have the record yet, but by an operator's word.
    pub(crate) fn is_held(&self) -> bool {
        !self.is_lost() && Instant::now() < self.safe_until()
    }

    /// Counts the record as lost if its lease has run out unheard, also where the background thread
    /// has not noticed yet, as in a process that was stopped for a while.
    pub(crate) fn lose_if_late(&self) {
        if self.safe_until() <= Instant::now() {
            self.lose();
        }
    }

    /// Whether it was lost before its body began: its claim was heard, or its task polled, too
    /// late. Also at hold: nothing has begun, so that to leave costs nothing, and an operator may
    /// have forgotten the record meanwhile and let another attempt run.
    pub(crate) fn came_too_late(&self) -> bool {
        self.lose_if_late();
        self.is_lost()
    }

    /// When the next heartbeat is due.
    pub(crate) fn renew_at(&self) -> Instant {
        self.lease().sent + (self.0.settings.terms.lease / 3).max(SHORTEST_PAUSE)
    }

    /// How long to wait before a heartbeat that got no answer is repeated.
    pub(crate) fn retry_pause(&self) -> Duration {
        (self.0.settings.terms.lease / 10).max(SHORTEST_PAUSE)
    }

    pub(crate) fn renewal(&self, checkpoint: bool) -> Renew {
        let mut echo = self.echo();
        echo.checkpoint &= self.may_be_rebuilt();
        Renew {
            owner: self.0.owner,
            terms: self.0.settings.terms,
            checkpoint,
            not_after: StoreTime::default(),
            echo,
        }
    }

    /// Whether a record that is not there was lost. It may also have been somebody else's since,
    /// who has ended and left none.
    fn may_be_rebuilt(&self) -> bool {
        let is_lost_lock = || self.0.key.is_lock() && self.is_lost();
        let has_to_go = self.0.stop.load(Ordering::SeqCst);
        !self.0.ended.load(Ordering::SeqCst) && !has_to_go && !is_lost_lock()
    }

    pub(crate) fn settlement(&self, outcome: Outcome) -> Settle {
        Settle {
            owner: self.0.owner,
            terms: self.0.settings.terms,
            outcome,
            not_after: StoreTime::default(),
            echo: Some(self.echo()),
        }
    }

    /// Takes over what a renewal was answered.
    pub(crate) fn hear_renewal(&self, asked: &Asked<RenewReply>, checkpoint: bool) {
        match asked.reply {
            RenewReply::Renewed { rebuilt } => {
                let mut lease = self.lease();
                lease.answered = lease.answered.max(asked.now);
                lease.sent = lease.sent.max(asked.sent);
                lease.checkpoint |= checkpoint;
                drop(lease);
                if rebuilt {
                    self.count_record_lost();
                }
            }
            RenewReply::Lost | RenewReply::Damaged => self.lose(),
            RenewReply::Late => {}
        }
    }

    pub(crate) fn count_record_lost(&self) {
        self.0.core.count_record_lost(&self.0.store_key);
    }

    fn echo(&self) -> Echo {
        let lease = *self.lease();
        Echo {
            answered: lease.answered,
            grant: self.0.grant,
            checkpoint: lease.checkpoint,
            policy: self.0.settings.on_abandoned,
            fingerprint: self.0.fingerprint,
        }
    }

    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.0.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A renewal that is under way.
#[derive(Debug)]
pub(crate) struct Renewing(Attempt);

impl Clone for Renewing {
    fn clone(&self) -> Self {
        self.0.renewing()
    }
}

impl Drop for Renewing {
    fn drop(&mut self) {
        if self.0.0.renewals.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.0.signal.say();
        }
    }
}
