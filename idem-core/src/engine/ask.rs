//! One store call: bounded in time, sent again once, and never taken for more than it answered.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::core::Core;
use crate::driver;
use crate::error::{StoreError, StoreErrorKind};
use crate::record::{
    Claim, ClaimReply, Issue, IssueReply, Refuse, RefuseReply, Renew, RenewReply, Settle,
    SettleReply, StoreTime,
};
use crate::store::{Answered, ErasedStore, StoreKey};

/// A write that carries its own deadline in store time.
pub(crate) trait Verb {
    type Reply;

    fn stamp(&mut self, not_after: StoreTime);

    fn send<'a>(
        &'a self,
        store: &'a dyn ErasedStore,
        key: &'a StoreKey,
    ) -> Pin<Box<dyn Future<Output = Answered<Self::Reply>> + Send + 'a>>;

    fn is_late(reply: &Self::Reply) -> bool;
}

macro_rules! verbs {
    ($($verb:ident($op:ty) -> $reply:ident;)*) => {
        $(impl Verb for $op {
            type Reply = $reply;

            fn stamp(&mut self, not_after: StoreTime) {
                self.not_after = not_after;
            }

            fn send<'a>(
                &'a self,
                store: &'a dyn ErasedStore,
                key: &'a StoreKey,
            ) -> Pin<Box<dyn Future<Output = Answered<$reply>> + Send + 'a>> {
                store.$verb(key, self)
            }

            fn is_late(reply: &$reply) -> bool {
                matches!(reply, $reply::Late)
            }
        })*
    };
}

verbs! {
    claim(Claim) -> ClaimReply;
    renew(Renew) -> RenewReply;
    settle(Settle) -> SettleReply;
    issue(Issue) -> IssueReply;
    refuse(Refuse) -> RefuseReply;
}

/// Which sends of one operation may still arrive: the latest deadline among those that were not
/// answered.
#[derive(Debug, Default)]
pub(crate) struct Unanswered(AtomicU64);

impl Unanswered {
    /// The store time after which none of them can do anything; `None` if all were answered.
    pub(crate) fn until(&self) -> Option<StoreTime> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            until => Some(StoreTime::from_micros(until)),
        }
    }

    fn sent(&self, not_after: StoreTime) -> u64 {
        self.0.fetch_max(not_after.as_micros(), Ordering::Relaxed)
    }

    fn answered(&self, before: u64) {
        self.0.store(before, Ordering::Relaxed);
    }
}

/// A reply, with what a lease needs to know about it.
#[derive(Debug)]
pub(crate) struct Asked<R> {
    pub(crate) reply: R,
    /// The store's time in the reply.
    pub(crate) now: StoreTime,
    /// When the answered send was sent: a lease counts from here.
    pub(crate) sent: Instant,
}

impl Core {
    /// Sends `op` and gives its answer, within the engine's limit. An unanswered send is repeated
    /// once, as the same operation; one that the store found late is repeated with a new deadline.
    pub(crate) async fn ask<V: Verb>(
        &self,
        key: &StoreKey,
        op: &mut V,
        unanswered: &Unanswered,
    ) -> Result<Asked<V::Reply>, StoreError> {
        let limit = self.times.limit;
        let begin = Instant::now();
        let half = begin + limit / 2;
        match self.ask_once(key, op, unanswered, begin, half).await {
            Err(error) if is_worth_a_resend(&error) => {
                let again = Instant::now();
                self.ask_once(key, op, unanswered, again, begin + limit)
                    .await
            }
            answered => answered,
        }
    }

    async fn ask_once<V: Verb>(
        &self,
        key: &StoreKey,
        op: &mut V,
        unanswered: &Unanswered,
        mut sent: Instant,
        until: Instant,
    ) -> Result<Asked<V::Reply>, StoreError> {
        loop {
            let not_after = self.deadline(sent, until).await?;
            op.stamp(not_after);
            let before = unanswered.sent(not_after);
            let answer = driver::by(until, op.send(&*self.store, key)).await?;
            let answer = answer.unwrap_or_else(|| Err(no_answer(self.times.limit)));
            if answer
                .as_ref()
                .map_or_else(StoreError::is_before_sending, |_| true)
            {
                unanswered.answered(before);
            }
            let answer = answer?;
            self.clock.hear(answer.now);
            if V::is_late(&answer.reply) {
                let again = Instant::now();
                if again < until {
                    sent = again;
                    continue;
                }
            }
            return Ok(Asked {
                reply: answer.reply,
                now: answer.now,
                sent,
            });
        }
    }

    /// The deadline of a write sent at `sent`, in store time. A process that has heard none, or
    /// none for long, asks first.
    async fn deadline(&self, sent: Instant, until: Instant) -> Result<StoreTime, StoreError> {
        let limit = self.times.limit;
        if let Some(not_after) = self.clock.not_after_for_sure(sent, limit) {
            return Ok(not_after);
        }
        let now = driver::by(until, self.store.now()).await?;
        let now = now.unwrap_or_else(|| Err(no_answer(limit)))?;
        self.clock.hear(now);
        Ok(now.after(limit))
    }

    /// An operation without a deadline of its own, within the engine's limit.
    pub(crate) async fn within_limit<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self.times.limit;
        let answer = driver::by(Instant::now() + limit, call).await?;
        answer.unwrap_or_else(|| Err(no_answer(limit)))
    }
}

/// A store that cannot take the write now may take it a moment later, over a new connection;
/// a wrong set-up or an unknown answer stays what it is.
fn is_worth_a_resend(error: &StoreError) -> bool {
    matches!(
        error.kind(),
        StoreErrorKind::Unavailable | StoreErrorKind::Refused | StoreErrorKind::Conflict
    )
}

fn no_answer(limit: Duration) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        format!("no answer within {limit:?}"),
    )
}

/// A write that the store went on finding late, until the time was over.
pub(crate) fn late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "the store found every send late",
    )
}
