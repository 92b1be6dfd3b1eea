//! What guarded bodies do: they say that they have begun, perhaps have an effect, and end in every
//! way that there is.

use std::panic::resume_unwind;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use idem_core::{Error, OnError, StoreError, StoreErrorKind};
use idem_tests::history::{End, Finding, Journal, LEASE, What};
use sqlx::PgExecutor;

/// One call, and what its body will do, if it runs.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) key: u64,
    pub(crate) number: u64,
    pub(crate) plan: Plan,
    pub(crate) journal: Arc<Journal>,
}

/// What a caller and a body do.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Whether the call waits for another's end.
    pub(crate) waits: bool,
    /// When the caller has enough of it.
    pub(crate) patience: Duration,
    before: Duration,
    /// Past its checkpoint, before its effect.
    between: Duration,
    after: Duration,
    end: Plans,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Plans {
    Success,
    /// An error, without an effect.
    Decline,
    /// An error after the effect.
    Break,
    Panic,
}

/// What callers get instead of a result.
#[derive(Debug)]
pub(crate) enum Failed {
    /// By the body: nothing happened.
    Declined,
    /// By the body: who knows.
    Broken,
    Guard(Error),
    Database,
}

impl Failed {
    /// As a store says it.
    pub(crate) fn unavailable(why: &'static str) -> Self {
        Self::Guard(StoreError::new(StoreErrorKind::Unavailable, why).into())
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Guard(error)
    }
}

impl From<sqlx::Error> for Failed {
    fn from(_: sqlx::Error) -> Self {
        Self::Database
    }
}

/// A guard's or a database's error comes to the body before its effect.
pub(crate) fn meaning(failed: &Failed) -> OnError {
    match failed {
        Failed::Broken => OnError::Abandon,
        Failed::Declined | Failed::Guard(_) | Failed::Database => OnError::Fail,
    }
}

/// Longer than anything that a call should wait for.
const FOR_EVER: Duration = Duration::from_secs(6);

impl Plan {
    /// A success without delay.
    pub(crate) const SIMPLE: Self = Self {
        waits: false,
        patience: FOR_EVER,
        before: Duration::ZERO,
        between: Duration::ZERO,
        after: Duration::ZERO,
        end: Plans::Success,
    };

    /// The parts of most bodies take less than `usual` milliseconds; some need their leases renewed.
    pub(crate) fn draw(dice: &mut Rng, usual: u64) -> Self {
        let longest = if dice.u8(..) < 10 { 1_000 } else { usual };
        Self {
            waits: dice.u8(..10) < 3,
            patience: match dice.u8(..20) {
                0 => Duration::from_millis(dice.u64(1..200)),
                _ => FOR_EVER,
            },
            before: Duration::from_millis(dice.u64(..longest)),
            between: Duration::from_millis(dice.u64(..longest)),
            after: Duration::from_millis(dice.u64(..longest)),
            end: match dice.u8(..100) {
                0..80 => Plans::Success,
                80..95 => Plans::Decline,
                95..98 => Plans::Break,
                _ => Plans::Panic,
            },
        }
    }

    /// Of a caller who stays, and a body that is over within half a lease and never fails after its
    /// effect: what breaks then is broken by a fault.
    pub(crate) fn draw_tame(dice: &mut Rng) -> Self {
        let longest = u64::try_from(LEASE.as_millis()).unwrap_or(0) / 4;
        Self {
            before: Duration::from_millis(dice.u64(..longest)),
            after: Duration::from_millis(dice.u64(..longest)),
            end: match dice.u8(..100) {
                0..85 => Plans::Success,
                _ => Plans::Decline,
            },
            ..Self::SIMPLE
        }
    }
}

impl Call {
    pub(crate) fn note(&self, what: What) {
        written(self.journal.note(self.key, self.number, what));
    }

    /// Before the checkpoint.
    pub(crate) async fn prepare(&self) {
        tokio::time::sleep(self.plan.before).await;
    }

    /// Past the checkpoint.
    pub(crate) async fn approach(&self) {
        tokio::time::sleep(self.plan.between).await;
    }

    /// After the effect.
    pub(crate) async fn clear_up(&self) {
        tokio::time::sleep(self.plan.after).await;
    }

    /// The effect where the table `effect` is the ledger.
    pub(crate) async fn add_effect<'c>(
        &self,
        database: impl PgExecutor<'c>,
    ) -> Result<(), sqlx::Error> {
        let [key, number] = [self.key, self.number].map(u64::cast_signed);
        let add = sqlx::query("INSERT INTO effect VALUES ($1, $2)").bind(key);
        add.bind(number).execute(database).await.map(drop)
    }

    /// The effect, with a resource that looks at fences: whether it took place.
    pub(crate) async fn happens(&self, fence: u64) -> bool {
        let Self { key, number, .. } = *self;
        let write = || self.journal.happens_unless_ruled_out(key, number, fence);
        until_written(write).await
    }

    /// The same, in the order of fences.
    pub(crate) async fn writes(&self, fence: u64) -> bool {
        let Self { key, number, .. } = *self;
        until_written(|| self.journal.happens_in_order(key, number, fence)).await
    }

    pub(crate) fn look_up(&self, fence: u64) -> Option<Finding> {
        written(self.journal.look_up(self.key, self.number, fence))
    }
}

/// A body under way. Dropped, it says so.
pub(crate) struct Body<'a> {
    call: &'a Call,
    is_over: bool,
}

impl<'a> Body<'a> {
    pub(crate) fn begin(call: &'a Call, fence: u64) -> Self {
        call.note(What::Begun { fence });
        Self {
            call,
            is_over: false,
        }
    }

    pub(crate) fn declines(&self) -> bool {
        self.call.plan.end == Plans::Decline
    }

    /// The end of a body without an effect.
    pub(crate) fn end_without_effect(self, why: Failed) -> Result<u64, Failed> {
        self.over(End::Nothing);
        Err(why)
    }

    /// The end of a body with an effect, as planned.
    pub(crate) fn end(self) -> Result<u64, Failed> {
        let Call { number, plan, .. } = self.call;
        match plan.end {
            Plans::Success | Plans::Decline => {
                self.over(End::Ok);
                Ok(*number)
            }
            Plans::Break => {
                self.over(End::Unknown);
                Err(Failed::Broken)
            }
            Plans::Panic => {
                self.over(End::Unknown);
                // Without the hook that prints it.
                resume_unwind(Box::new("as planned"))
            }
        }
    }

    fn over(mut self, end: End) {
        self.is_over = true;
        self.call.note(What::Ended(end));
    }
}

impl Drop for Body<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.call.note(What::Ended(End::Dropped));
        }
    }
}

async fn until_written(write: impl Fn() -> anyhow::Result<Option<bool>>) -> bool {
    loop {
        match written(write()) {
            Some(happened) => return happened,
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// A history with holes proves nothing: the process ends, and the suite hears of it.
fn written<T>(result: anyhow::Result<T>) -> T {
    result.unwrap_or_else(|error| {
        eprintln!("the history can not be written: {error:#}");
        process::abort()
    })
}
