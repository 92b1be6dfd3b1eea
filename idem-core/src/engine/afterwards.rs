//! Settles that go on after their call, bounded in number, in rate and in time.
//!
//! While a store is away every call leaves one behind. They wait in one line, of which a few ask
//! at a time, so that a store that comes back is not met by all of them at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::ask::Unanswered;
use super::core::{BusyToken, Core, Counters};
use crate::driver;
use crate::record::{Outcome, Settle, SettleReply, StoreTime};
use crate::store::StoreKey;

/// How many settles of one engine go on at a time, and how many wait.
#[derive(Debug)]
pub(crate) struct Afterwards {
    /// Words of bodies that ran: they matter more, and do not stand behind the others.
    settling: Semaphore,
    /// Of claims that nobody wants any more.
    giving_up: Semaphore,
    waiting: Semaphore,
}

impl Default for Afterwards {
    fn default() -> Self {
        const ASKING: usize = 32;
        const WAITING: usize = 100_000;
        Self {
            settling: Semaphore::new(ASKING),
            giving_up: Semaphore::new(ASKING),
            waiting: Semaphore::new(WAITING),
        }
    }
}

impl Afterwards {
    fn line(&self, outcome: &Outcome) -> &Semaphore {
        match outcome {
            Outcome::GiveUp => &self.giving_up,
            _ => &self.settling,
        }
    }
}

/// Repeats a settle in the background until it is answered, or until nobody needs it any more.
///
/// With `until` it goes on until an answer is later than that: before, a send of the claim may
/// still arrive behind it.
pub(crate) fn settle(
    core: &Arc<Core>,
    key: &StoreKey,
    settle: Settle,
    until: Option<StoreTime>,
    busy: Option<BusyToken>,
) {
    let (core, key) = (core.clone(), key.clone());
    driver::spawn(async move {
        let asked = match core.afterwards.waiting.try_acquire() {
            Ok(_place) => go_on(&core, &key, &mut { settle }, until).await,
            Err(_) => Err("too many wait already"),
        };
        if let Err(why) = asked {
            Counters::add(&core.counters.unconfirmed);
            tracing::error!(?key, why, "a settle was never answered");
        }
        drop(busy);
    });
}

async fn go_on(
    core: &Core,
    key: &StoreKey,
    settle: &mut Settle,
    until: Option<StoreTime>,
) -> Result<(), &'static str> {
    const FIRST_PAUSE: Duration = Duration::from_millis(50);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let last_moment = Instant::now() + record_lives(settle).max(core.times.limit * 2);
    let mut pause = FIRST_PAUSE;
    loop {
        let turn = core.afterwards.line(&settle.outcome).acquire().await;
        let asked = core.ask(key, settle, &Unanswered::default()).await;
        drop(turn);
        match asked {
            Ok(asked) if asked.reply == SettleReply::Late => {}
            Ok(asked) => match until {
                Some(until) if asked.now <= until => pause = just_after(until, asked.now),
                _ => return Ok(()),
            },
            Err(error) => {
                let outcome = name(&settle.outcome);
                tracing::debug!(?key, outcome, %error, "a settle goes on");
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        if Instant::now() + pause > last_moment {
            return Err("its time is over");
        }
        driver::sleep(pause)
            .await
            .map_err(|_| "there is no background thread")?;
    }
}

/// For how long the owner's word counts. Past its checkpoint at hold, a record outlives `expire`;
/// so may one whose claim was never heard of.
fn record_lives(settle: &Settle) -> Duration {
    let terms = &settle.terms;
    match &settle.echo {
        Some(echo) => terms.keep(echo.checkpoint, echo.policy),
        None => terms.expire.max(terms.doubt),
    }
}

fn just_after(until: StoreTime, now: StoreTime) -> Duration {
    until.since(now) + Duration::from_millis(1)
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
