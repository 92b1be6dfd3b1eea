//! Ownership of an attempt: whatever happens to the caller, its record is told.

use std::fmt;
use std::sync::Arc;

use super::afterwards;
use super::ask::Unanswered;
use super::core::{BusyToken, Core};
use crate::attempt::Attempt;
use crate::error::StoreError;
use crate::policy::Settings;
use crate::record::{Outcome, Owner, Settle, SettleReply, StoreTime, Terms};
use crate::store::StoreKey;

/// A claim that is being asked. Dropped before it is [answered](Self::answered) for good, it is
/// given up until none of its sends can arrive any more.
pub(crate) struct ClaimGuard<'a> {
    core: &'a Arc<Core>,
    key: &'a StoreKey,
    owner: Owner,
    terms: Terms,
    pub(crate) unanswered: Unanswered,
    busy: Option<BusyToken>,
}

/// What a granted claim leaves to the attempt.
pub(crate) struct Granted {
    /// Until when copies of the claim may still arrive; `None` if all were answered.
    unanswered: Option<StoreTime>,
    busy: Option<BusyToken>,
}

impl<'a> ClaimGuard<'a> {
    pub(crate) fn new(core: &'a Arc<Core>, key: &'a StoreKey, owner: Owner, terms: Terms) -> Self {
        Self {
            core,
            key,
            owner,
            terms,
            unanswered: Unanswered::default(),
            busy: Some(BusyToken::new(core)),
        }
    }

    /// The claim was granted: from now on the attempt's own guard answers for it.
    pub(crate) fn granted(mut self) -> Granted {
        let granted = Granted {
            unanswered: self.unanswered.until(),
            busy: self.busy.take(),
        };
        std::mem::forget(self);
        granted
    }

    /// The body runs although the claim was not answered. It may have been granted all the same,
    /// so its end is told to the store.
    pub(crate) fn run_unguarded(mut self, settings: Settings) -> UnguardedGuard {
        let until = self.unanswered.until();
        let settle = Settle {
            outcome: Outcome::Abandon,
            ..give_up(self.owner, self.terms)
        };
        let guard = UnguardedGuard {
            core: self.core.clone(),
            key: self.key.clone(),
            // Where nothing was sent there is nothing to settle.
            settle: until.map(|_| Box::new(settle)),
            settings: Box::new(settings),
            until,
            busy: self.busy.take(),
        };
        std::mem::forget(self);
        guard
    }
}

impl Drop for ClaimGuard<'_> {
    fn drop(&mut self) {
        if let Some(until) = self.unanswered.until() {
            let settle = give_up(self.owner, self.terms);
            afterwards::settle(self.core, self.key, settle, Some(until), self.busy.take());
        }
    }
}

fn give_up(owner: Owner, terms: Terms) -> Settle {
    Settle {
        owner,
        terms,
        outcome: Outcome::GiveUp,
        not_after: StoreTime::default(),
        echo: None,
    }
}

/// A body that runs without a guard. However it ends, its owner's record, if there is one, is
/// told in the background.
pub(crate) struct UnguardedGuard {
    core: Arc<Core>,
    key: StoreKey,
    settle: Option<Box<Settle>>,
    settings: Box<Settings>,
    until: Option<StoreTime>,
    busy: Option<BusyToken>,
}

impl UnguardedGuard {
    /// The body has ended so.
    pub(crate) fn settle(mut self, outcome: Outcome) {
        if let Some(settle) = &mut self.settle {
            settle.outcome = outcome;
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Drop for UnguardedGuard {
    fn drop(&mut self) {
        if let Some(settle) = self.settle.take() {
            let busy = self.busy.take();
            afterwards::settle(&self.core, &self.key, *settle, self.until, busy);
        }
    }
}

/// An attempt that was granted and is not yet settled. Dropped, it is given up, abandoned, or
/// settled as it was about to be, by how far it had come.
pub(crate) struct AttemptGuard {
    attempt: Attempt,
    stage: Stage,
    pulse: u64,
    claim: Granted,
}

enum Stage {
    /// The body was never polled.
    Granted,
    /// Its effects, if any, are its own affair.
    Running,
    /// It has ended so.
    Settling(Outcome),
    /// The store knows.
    Settled,
}

impl fmt::Debug for AttemptGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.attempt.fmt(f)
    }
}

impl AttemptGuard {
    pub(crate) fn new(attempt: Attempt, claim: Granted) -> Self {
        let core = &attempt.inner().core;
        let pulse = core.heartbeats.add(core, &attempt);
        Self {
            attempt,
            stage: Stage::Granted,
            pulse,
            claim,
        }
    }

    pub(crate) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// The body, or `recover`, is about to be polled; `false` if it must not be any more.
    pub(crate) fn begin(&mut self) -> bool {
        if self.attempt.came_too_late() {
            return false;
        }
        self.stage = Stage::Running;
        true
    }

    /// There is no body that could end in doubt: from now on a drop is a release. `false` if the
    /// lease has run out already.
    pub(crate) fn hold(&mut self) -> bool {
        self.stage = Stage::Settling(Outcome::Release);
        self.attempt.lose_if_late();
        !self.attempt.is_lost()
    }

    /// Tells the store how the attempt ended.
    ///
    /// Dropped, or without an answer, the same settle goes on in the background.
    pub(crate) async fn settle(mut self, outcome: Outcome) -> Result<SettleReply, StoreError> {
        let was_held = self.attempt.is_held();
        self.attempt.end();
        let mut settle = self.attempt.settlement(outcome.clone());
        let leaves_a_record = matches!(outcome, Outcome::Success(_));
        let is_committed =
            matches!(outcome, Outcome::SuccessForget) && self.attempt.is_settled_in();
        self.stage = Stage::Settling(outcome);
        let inner = self.attempt.inner();
        if !leaves_a_record {
            // Behind a word that leaves no record it could make one.
            inner.core.heartbeats.remove(self.pulse);
            self.attempt.no_renewal().await;
        }
        let unanswered = Unanswered::default();
        let asked = inner
            .core
            .ask(&inner.store_key, &mut settle, &unanswered)
            .await?;
        if asked.reply == SettleReply::Late {
            return Ok(SettleReply::Late);
        }
        if asked.reply == SettleReply::Adopted {
            self.attempt.count_record_lost();
        }
        self.stage = Stage::Settled;
        // Nobody else could have the record when the first word was sent: whoever has it now came
        // behind that, whose answer was lost.
        let was_told = !leaves_a_record && was_held && unanswered.until().is_some();
        match asked.reply {
            SettleReply::Superseded { .. } if was_told || is_committed => {
                tracing::debug!(
                    key = ?inner.store_key,
                    "the end of an attempt was known before, and its key has been taken since"
                );
                Ok(SettleReply::Settled)
            }
            reply => Ok(reply),
        }
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        self.attempt.end();
        let inner = self.attempt.inner();
        inner.core.heartbeats.remove(self.pulse);
        let (outcome, until) = match std::mem::replace(&mut self.stage, Stage::Settled) {
            Stage::Granted => (Outcome::GiveUp, self.claim.unanswered),
            Stage::Running => (Outcome::Abandon, None),
            Stage::Settling(outcome) => (outcome, None),
            Stage::Settled => return,
        };
        let settle = self.attempt.settlement(outcome);
        let busy = self.claim.busy.take();
        let (attempt, core, key) = (self.attempt.clone(), &inner.core, &inner.store_key);
        let renewed = async move { attempt.no_renewal().await };
        afterwards::settle_after(renewed, core, key, settle, until, busy);
    }
}
