//! Settles that go on after their call, bounded in number, in bytes, in rate and in time.
//!
//! While a store is away every call leaves one behind. They wait in one line, of which a few ask
//! at a time, so that a store that comes back is not met by all of them at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::ask::Unanswered;
use super::core::{BusyToken, Core};
use crate::driver;
use crate::record::{Current, Outcome, Settle, SettleReply, StoreTime};
use crate::store::StoreKey;

/// The settles of one engine that go on.
#[derive(Debug, Default)]
pub(crate) struct Afterwards {
    /// Words of bodies that ran: they matter more, and do not stand behind the others.
    settling: Line,
    /// Of claims that nobody wants any more.
    giving_up: Line,
}

/// How many go on at a time, and how many wait.
#[derive(Debug)]
struct Line {
    asking: Semaphore,
    /// A place for each, and one more for each KiB that it has to say.
    places: Semaphore,
}

impl Line {
    const PLACES: u32 = 100_000;

    /// A place for `outcome`, whatever its size in an empty line.
    fn place(&self, outcome: &Outcome) -> Option<SemaphorePermit<'_>> {
        let payload = match outcome {
            Outcome::Success(Some(bytes)) | Outcome::FailedWith(bytes) => bytes.len(),
            _ => 0,
        };
        let places = u32::try_from(1 + payload / 1024)
            .map_or(Self::PLACES, |places| places.min(Self::PLACES));
        self.places.try_acquire_many(places).ok()
    }
}

impl Default for Line {
    fn default() -> Self {
        const ASKING: usize = 32;
        Self {
            asking: Semaphore::new(ASKING),
            places: Semaphore::new(Self::PLACES as usize),
        }
    }
}

impl Afterwards {
    fn line(&self, outcome: &Outcome) -> &Line {
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
    settle_after(std::future::ready(()), core, key, settle, until, busy);
}

/// The same, behind `first`.
pub(crate) fn settle_after(
    first: impl Future<Output = ()> + Send + 'static,
    core: &Arc<Core>,
    key: &StoreKey,
    settle: Settle,
    until: Option<StoreTime>,
    busy: Option<BusyToken>,
) {
    let (core, key) = (core.clone(), key.clone());
    driver::spawn(async move {
        let mut settle = settle;
        let line = core.afterwards.line(&settle.outcome);
        let answered = match line.place(&settle.outcome) {
            Some(_place) => {
                first.await;
                go_on(&core, &key, line, &mut settle, until).await
            }
            None => Err("too much waits already"),
        };
        match answered {
            Ok(reply) => hear(&core, &key, &settle, &reply),
            Err(why) => {
                let outcome = name(&settle.outcome);
                tracing::error!(?key, outcome, why, "a settle was never answered");
            }
        }
        drop(busy);
    });
}

/// What an answer means that no caller waits for any more.
fn hear(core: &Core, key: &StoreKey, settle: &Settle, reply: &SettleReply) {
    if *reply == SettleReply::Adopted {
        core.count_record_lost(key);
    } else if is_lost(settle, reply) {
        tracing::error!(?key, "a success was told too late: its record had gone");
    }
}

/// Whether a success came too late. Of one that was never granted, as far as is known, there need not
/// have been a record. One that leaves none may have been told before, by a word whose answer was lost.
fn is_lost(settle: &Settle, reply: &SettleReply) -> bool {
    let may_have_been_granted = match reply {
        SettleReply::Superseded {
            current: Current::Nothing,
        } => settle.echo.is_some(),
        SettleReply::Superseded { .. } | SettleReply::Damaged => true,
        SettleReply::Settled | SettleReply::Adopted | SettleReply::Late => false,
    };
    let is_success = match settle.outcome {
        Outcome::Success(_) => true,
        Outcome::SuccessForget => settle.echo.is_none(),
        _ => false,
    };
    is_success && may_have_been_granted
}

async fn go_on(
    core: &Core,
    key: &StoreKey,
    line: &Line,
    settle: &mut Settle,
    until: Option<StoreTime>,
) -> Result<SettleReply, &'static str> {
    const FIRST_PAUSE: Duration = Duration::from_millis(50);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let last_moment = Instant::now() + record_lives(settle).max(core.times.limit * 2);
    let mut pause = FIRST_PAUSE;
    loop {
        let turn = line.asking.acquire().await;
        let asked = core.ask(key, settle, &Unanswered::default()).await;
        drop(turn);
        match asked {
            Ok(asked) if asked.reply == SettleReply::Late => {}
            Ok(asked) => match until {
                Some(until) if asked.now <= until => pause = just_after(until, asked.now),
                _ => return Ok(asked.reply),
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

/// For how long the owner's word counts. At hold a record may outlive `expire`, also one whose
/// claim or checkpoint was never heard of.
fn record_lives(settle: &Settle) -> Duration {
    settle.terms.expire.max(settle.terms.doubt)
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::record::{Echo, Fence, Grant, OnAbandoned, Owner, Terms};

    fn success(bytes: usize) -> Outcome {
        Outcome::Success(Some(Bytes::from(vec![0; bytes])))
    }

    #[test]
    fn what_waits_is_bounded_by_its_size_too() {
        let line = Line::default();
        let kept: Vec<_> = std::iter::from_fn(|| line.place(&success(9 << 20))).collect();
        assert_eq!(kept.len(), 10, "of the 97 MiB or so that may wait");
        assert!(line.place(&Outcome::Release).is_some());
    }

    #[test]
    fn a_result_of_any_size_may_wait_alone() {
        let line = Line::default();
        let huge = line.place(&success(200 << 20));
        assert!(huge.is_some());
        assert!(line.place(&Outcome::Release).is_none());
        drop(huge);
        assert!(line.place(&Outcome::Release).is_some());
    }

    #[test]
    fn a_success_without_a_record_is_no_loss_where_there_need_not_be_one() {
        let told = |outcome, echo, current| {
            let settle = Settle {
                owner: Owner::NOBODY,
                terms: Terms {
                    lease: Duration::ZERO,
                    expire: Duration::ZERO,
                    doubt: Duration::ZERO,
                    limit: Duration::ZERO,
                },
                outcome,
                not_after: StoreTime::default(),
                echo,
            };
            is_lost(&settle, &SettleReply::Superseded { current })
        };
        let echo = || {
            Some(Echo {
                answered: StoreTime::default(),
                grant: Grant {
                    fence: Fence::default(),
                    number: 1,
                    since: StoreTime::default(),
                    takeover: false,
                    doubt: false,
                    token: None,
                },
                checkpoint: true,
                policy: OnAbandoned::Hold,
                fingerprint: None,
            })
        };
        for outcome in [success(1), Outcome::SuccessForget] {
            assert!(!told(outcome.clone(), None, Current::Nothing));
            assert!(told(outcome, None, Current::Success { result: None }));
        }
        assert!(told(success(1), echo(), Current::Nothing));
        for outcome in [Outcome::SuccessForget, Outcome::Failed] {
            for current in [Current::Nothing, Current::Processing] {
                assert!(!told(outcome.clone(), echo(), current));
            }
        }
    }
}
