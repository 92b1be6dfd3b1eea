//! Records in Redis 6.2 or later, or in Valkey.
//!
//! Each record is one key with one packed string (see [`format`](mod@format)), and
//! each verb is one Lua script that touches this key only, so that any topology works: what the
//! scripts decide is [`step`](crate::record::step()), what they are told is in `argv`, what they
//! answer in `reply`.
//!
//! A connection belongs to a runtime (`pool`). A call is sent once, but for a script that the
//! server has forgotten and a slot that has moved, neither of which was executed; it has an answer
//! or an error within the limit. Whether to send again is the caller's choice: only the caller
//! knows what a claim that was sent twice has to clean up.
//!
//! # Examples
//! ```no_run
//! # async fn example() -> Result<(), idem_core::StoreError> {
//! use idem_core::store::RedisStore;
//!
//! let store = RedisStore::connect("redis://127.0.0.1/").await?;
//! # Ok(())
//! # }
//! ```

mod argv;
mod builder;
mod check;
mod endpoint;
mod fault;
mod link;
mod nodes;
mod pool;
mod reply;
mod scan;
mod script;
mod sentinel;
mod target;
#[cfg(feature = "tls")]
mod tls;
mod watch;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{RedisError, RedisResult, Value};
use tokio::runtime::Handle;

use super::{Answered, Finding, Page, Scan, Store, StoreKey, Watch};
use crate::driver;
use crate::error::{StoreError, StoreErrorKind};
use crate::record::{
    Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Refuse, RefuseReply, Renew,
    RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime, format,
};
use crate::store::Answer;
use argv::Argv;
pub use builder::{DEFAULT_LIMIT, RedisBuilder};
use fault::{Fault, Harm, misconfigured};
use link::Link;
use pool::Pool;
use reply::Reply;
#[cfg(feature = "fuzzing")]
pub(crate) use reply::fuzzing;
use script::Step;
use target::Target;
use watch::Hub;

/// A store of records in Redis or Valkey. Cheap to clone; all clones share their connections.
///
/// # Cancel safety
/// Dropping a call leaves open whether the server did it; usually it did. No other call is
/// disturbed.
///
/// # Concurrent calls on the same key
/// The server runs one script at a time, so calls on one key take effect one after the other.
#[derive(Clone)]
pub struct RedisStore {
    pool: Arc<Pool>,
    hub: Arc<Hub>,
}

impl RedisStore {
    /// Connects to what `url` names, as [`RedisBuilder::url`] reads it: a server, the nodes of a
    /// cluster parted by commas, or Sentinels. For anything else there is [`RedisBuilder`].
    ///
    /// # Errors
    /// Those of [`RedisBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        RedisBuilder::url(url).connect().await
    }

    fn new(target: Target, limit: Duration) -> Self {
        let pool = Arc::new(Pool::new(target, limit));
        Self {
            hub: Arc::new(Hub::new(Arc::clone(&pool))),
            pool,
        }
    }

    /// How long a call may take, connecting included.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.pool.limit()
    }

    /// Makes sure that the server can be reached.
    async fn reach(&self) -> Result<(), StoreError> {
        self.within_limit(async { self.link().await.map(drop) })
            .await
    }

    async fn link(&self) -> Result<Arc<Link>, StoreError> {
        self.pool.link().await.map_err(StoreError::before_sending)
    }

    /// Runs a step on a key.
    async fn run(&self, step: &Step, key: &StoreKey, argv: &Argv<'_>) -> Answered<Reply> {
        // Pinned here: handed over by value, every verb's future would hold it twice.
        let call = pin!(self.run_once(step, key, argv));
        self.within_limit(call).await
    }

    async fn run_once(&self, step: &Step, key: &StoreKey, argv: &Argv<'_>) -> Answered<Reply> {
        let link = self.link().await?;
        let answer = send(&link, step, key.as_str(), argv).await;
        reply(answer.map_err(|error| self.failed(&link, error))?)
    }

    /// Runs a step on many keys at once; the answers stand in their order.
    async fn run_all(
        &self,
        link: &Arc<Link>,
        step: &Step,
        calls: &[(&str, Argv<'_>)],
    ) -> Vec<Answered<Reply>> {
        let by_hash = |(key, argv): &(&str, Argv<'_>)| step.by_hash(link.dialect, key, argv);
        let answers = link.send_all(calls.iter().map(by_hash).collect()).await;
        let mut replies = Vec::with_capacity(answers.len());
        let mut harm = Harm::None;
        for ((key, argv), answer) in calls.iter().zip(answers) {
            let answer = match answer {
                Err(error) if is_unknown_script(&error) => send(link, step, key, argv).await,
                other => other,
            };
            let answer = answer.map_err(|error| {
                let fault = Fault::from(error);
                harm = harm.max(fault.harm);
                fault.error
            });
            replies.push(answer.and_then(reply));
        }
        // Once: how many keys lie where it was silent says nothing.
        self.note(link, harm);
        replies
    }

    async fn time_of_any(&self) -> Result<StoreTime, StoreError> {
        self.time(&self.link().await?).await
    }

    async fn renewed(
        &self,
        batch: &[(StoreKey, Renew)],
    ) -> Result<Vec<Answered<Reply>>, StoreError> {
        let link = self.link().await?;
        let calls: Vec<_> = batch
            .iter()
            .map(|(key, op)| (key.as_str(), argv::renew(op)))
            .collect();
        let mut answers = self.run_all(&link, &script::RENEW, &calls).await;

        let mut lost = Vec::new();
        let mut again = Vec::new();
        for (index, (key, op)) in batch.iter().enumerate() {
            if matches!(&answers[index], Ok(answer) if answer.reply == Reply::Nothing)
                && let Some(echo) = argv::renew_echo(op)
            {
                lost.push(index);
                again.push((key.as_str(), argv::renew(op).with_echo(echo)));
            }
        }
        if !lost.is_empty() {
            let rebuilt = self.run_all(&link, &script::RENEW, &again).await;
            for (index, answer) in lost.into_iter().zip(rebuilt) {
                answers[index] = answer;
            }
        }
        Ok(answers)
    }

    fn failed(&self, link: &Arc<Link>, error: RedisError) -> StoreError {
        let fault = Fault::from(error);
        self.note(link, fault.harm);
        fault.error
    }

    fn note(&self, link: &Arc<Link>, harm: Harm) {
        match harm {
            Harm::None => {}
            Harm::Connection | Harm::Node if link.is_cluster() => link.note_failure(),
            Harm::Connection | Harm::Node => self.pool.discard(link),
        }
    }

    /// A call that changes nothing: tried once more if its connection turns out to be broken, as
    /// one does that idled while the server was restarted.
    async fn reading<T, F>(&self, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        self.within_limit(async {
            match call().await {
                Err(error) if error.kind() == StoreErrorKind::Unavailable => call().await,
                other => other,
            }
        })
        .await
    }

    async fn within_limit<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if Handle::try_current().is_err() {
            return Err(misconfigured("redis: called from outside a tokio runtime"));
        }
        let answer = driver::by(driver::moment_in(self.limit()), call).await?;
        answer.unwrap_or_else(|| Err(no_answer(self.limit())))
    }
}

fn no_answer(limit: Duration) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        format!("redis: no answer within {limit:?}"),
    )
}

/// By hash, or whole to a server that does not have it, or not any more.
async fn send(link: &Link, step: &Step, key: &str, argv: &Argv<'_>) -> RedisResult<Value> {
    match link.send(&step.by_hash(link.dialect, key, argv)).await {
        Err(error) if is_unknown_script(&error) => {
            link.send(&step.by_source(link.dialect, key, argv)).await
        }
        other => other,
    }
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

fn reply(answer: Value) -> Answered<Reply> {
    match answer {
        Value::BulkString(bytes) => reply::decode(bytes),
        other => Err(StoreError::new(
            StoreErrorKind::Protocol,
            format!("redis: a script answered {other:?}"),
        )),
    }
}

/// What a peek found.
fn peeked(Answer { now, reply }: Answer<Reply>) -> Answered<Slot> {
    let reply = match reply {
        Reply::Nothing => Slot::Absent,
        Reply::Damaged => Slot::Damaged,
        Reply::Record { expires_at, bytes } => {
            format::decode(bytes, expires_at).map_or(Slot::Damaged, Slot::Record)
        }
        _ => return Err(reply::of_another_script()),
    };
    Ok(Answer { now, reply })
}

impl Store for RedisStore {
    async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
        let answer = self.run(&script::CLAIM, key, &argv::claim(op)).await?;
        answer.into_verb()
    }

    async fn renew(&self, key: &StoreKey, op: &Renew) -> Answered<RenewReply> {
        let argv = argv::renew(op);
        let mut answer = self.run(&script::RENEW, key, &argv).await?;
        if answer.reply == Reply::Nothing
            && let Some(echo) = argv::renew_echo(op)
        {
            let argv = argv.with_echo(echo);
            answer = self.run(&script::RENEW, key, &argv).await?;
        }
        answer.into_verb()
    }

    async fn settle(&self, key: &StoreKey, op: &Settle) -> Answered<SettleReply> {
        let argv = argv::settle(op);
        let mut answer = self.run(&script::SETTLE, key, &argv).await?;
        if answer.reply == Reply::Nothing
            && let Some(echo) = argv::settle_echo(op)
        {
            let argv = argv.with_echo(echo);
            answer = self.run(&script::SETTLE, key, &argv).await?;
        }
        answer.into_verb()
    }

    async fn issue(&self, key: &StoreKey, op: &Issue) -> Answered<IssueReply> {
        let answer = self.run(&script::ISSUE, key, &argv::issue(op)).await?;
        answer.into_verb()
    }

    async fn refuse(&self, key: &StoreKey, op: &Refuse) -> Answered<RefuseReply> {
        let answer = self.run(&script::REFUSE, key, &argv::refuse(op)).await?;
        answer.into_verb()
    }

    async fn forget(&self, key: &StoreKey, op: &Forget) -> Answered<OperatorReply> {
        let answer = self.run(&script::FORGET, key, &argv::forget(op)).await?;
        answer.into_verb()
    }

    async fn resolve(&self, key: &StoreKey, op: &Resolve) -> Answered<OperatorReply> {
        let answer = self.run(&script::RESOLVE, key, &argv::resolve(op)).await?;
        answer.into_verb()
    }

    async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
        let peek = || self.run_once(&script::PEEK, key, &Argv::NONE);
        peeked(self.reading(peek).await?)
    }

    async fn scan(&self, scan: &Scan) -> Answered<Page> {
        self.reading(|| self.page(scan)).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.reading(|| self.time_of_any()).await
    }

    /// Renews a whole batch with one write to the wire, and those that were found lost with a
    /// second one, as [`renew`](Store::renew) does.
    async fn renew_all(&self, batch: &[(StoreKey, Renew)]) -> Vec<Answered<RenewReply>> {
        match self.within_limit(self.renewed(batch)).await {
            Ok(answers) => answers
                .into_iter()
                .map(|answer| answer.and_then(Answer::into_verb))
                .collect(),
            Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn watch(&self, key: &StoreKey) -> Result<Watch, StoreError> {
        self.within_limit(self.hub.watch(key.as_str())).await
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.reading(|| self.findings()).await
    }
}

impl fmt::Debug for RedisStore {
    /// Names no address: it may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("limit", &self.limit())
            .finish_non_exhaustive()
    }
}
