//! Ownership of an attempt: whatever happens to the caller, its record is told.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ask::Unanswered;
use super::core::{BusyToken, Core, Counters};
use crate::attempt::Attempt;
use crate::driver;
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
}

impl<'a> ClaimGuard<'a> {
    pub(crate) fn new(core: &'a Arc<Core>, key: &'a StoreKey, owner: Owner, terms: Terms) -> Self {
        Self {
            core,
            key,
            owner,
            terms,
            unanswered: Unanswered::default(),
        }
    }

    /// The claim was granted: from now on the attempt's own guard answers for it. Says until when
    /// copies of the claim may still arrive.
    pub(crate) fn granted(self) -> Option<StoreTime> {
        let until = self.unanswered.until();
        std::mem::forget(self);
        until
    }

    /// The body runs although the claim was not answered. It may have been granted all the same,
    /// so its end is told to the store.
    pub(crate) fn run_unguarded(self, settings: Settings) -> UnguardedGuard {
        let settle = give_up(self.owner, self.terms);
        let guard = UnguardedGuard {
            core: self.core.clone(),
            key: self.key.clone(),
            settle: Some(Box::new(Settle {
                outcome: Outcome::Abandon,
                ..settle
            })),
            settings: Box::new(settings),
            until: self.unanswered.until(),
            busy: Some(BusyToken::new(self.core)),
        };
        std::mem::forget(self);
        guard
    }
}

impl Drop for ClaimGuard<'_> {
    fn drop(&mut self) {
        if let Some(until) = self.unanswered.until() {
            let settle = give_up(self.owner, self.terms);
            driver::spawn(go_on(
                self.core.clone(),
                self.key.clone(),
                settle,
                Some(until),
            ));
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
            let job = go_on(self.core.clone(), self.key.clone(), *settle, self.until);
            in_background(job, self.busy.take());
        }
    }
}

/// An attempt that was granted and is not yet settled. Dropped, it is given up, abandoned, or
/// settled as it was about to be, by how far it had come.
pub(crate) struct AttemptGuard {
    attempt: Attempt,
    stage: Stage,
    pulse: u64,
    /// Copies of its claim that may still arrive.
    unanswered: Option<StoreTime>,
    busy: Option<BusyToken>,
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

impl AttemptGuard {
    pub(crate) fn new(attempt: Attempt, unanswered: Option<StoreTime>) -> Self {
        let core = &attempt.inner().core;
        let pulse = core.heartbeats.add(core, &attempt);
        let busy = Some(BusyToken::new(core));
        Self {
            attempt,
            stage: Stage::Granted,
            pulse,
            unanswered,
            busy,
        }
    }

    pub(crate) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// The body, or `recover`, is about to be polled.
    pub(crate) fn begin(&mut self) {
        self.stage = Stage::Running;
    }

    /// Tells the store how the attempt ended.
    ///
    /// Dropped, or without an answer, the same settle goes on in the background.
    pub(crate) async fn settle(mut self, outcome: Outcome) -> Result<SettleReply, StoreError> {
        let mut settle = self.attempt.settlement(outcome.clone());
        self.stage = Stage::Settling(outcome);
        let inner = self.attempt.inner();
        let asked = inner
            .core
            .ask(&inner.store_key, &mut settle, &Unanswered::default())
            .await?;
        if asked.reply == SettleReply::Late {
            return Ok(SettleReply::Late);
        }
        if asked.reply == SettleReply::Adopted {
            self.attempt.count_record_lost();
        }
        self.stage = Stage::Settled;
        Ok(asked.reply)
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        let inner = self.attempt.inner();
        inner.core.heartbeats.remove(self.pulse);
        let (outcome, until) = match std::mem::replace(&mut self.stage, Stage::Settled) {
            Stage::Granted => (Outcome::GiveUp, self.unanswered),
            Stage::Running => (Outcome::Abandon, None),
            Stage::Settling(outcome) => (outcome, None),
            Stage::Settled => return,
        };
        let settle = self.attempt.settlement(outcome);
        let job = go_on(inner.core.clone(), inner.store_key.clone(), settle, until);
        in_background(job, self.busy.take());
    }
}

fn in_background(job: impl Future<Output = ()> + Send + 'static, busy: Option<BusyToken>) {
    driver::spawn(async move {
        job.await;
        drop(busy);
    });
}

/// Repeats a settle until it is answered, or until nobody needs it any more. With `until` it goes
/// on until an answer is later than that: then no send of the claim can arrive behind it.
async fn go_on(core: Arc<Core>, key: StoreKey, mut settle: Settle, until: Option<StoreTime>) {
    const FIRST_PAUSE: Duration = Duration::from_millis(50);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    // The owner's word counts for as long as a record lives.
    let give_up_at = Instant::now() + settle.terms.expire.max(core.times.limit * 2);
    let mut pause = FIRST_PAUSE;
    loop {
        let asked = core.ask(&key, &mut settle, &Unanswered::default()).await;
        match asked {
            Ok(asked) if until.is_none_or(|until| asked.now > until) => {
                if asked.reply != SettleReply::Late {
                    return;
                }
            }
            Ok(asked) => {
                let left = until.map_or(Duration::ZERO, |until| until.since(asked.now));
                pause = left.min(LONGEST_PAUSE) + Duration::from_millis(1);
            }
            Err(error) => {
                tracing::debug!(?key, %error, "a settle goes on");
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        if Instant::now() + pause > give_up_at {
            Counters::add(&core.counters.unconfirmed);
            tracing::error!(?key, outcome = ?name(&settle.outcome), "a settle was never answered");
            return;
        }
        if driver::sleep(pause).await.is_err() {
            return;
        }
    }
}

/// The outcome without its payload, for logs.
fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Success(_) | Outcome::SuccessForget => "success",
        Outcome::Failed | Outcome::FailedWith(_) => "failed",
        Outcome::Release => "release",
        Outcome::Abandon => "abandon",
        Outcome::GiveUp => "give-up",
    }
}
