//! Records in Redis 6.2 or later, or in Valkey.
//!
//! Each record is one key with one packed string (see [`format`](crate::record::format)), and
//! each verb is one Lua script that touches this key only, so that any topology works: what the
//! scripts decide is [`step`](crate::record::step()), what they are told is in `argv`, what they
//! answer in `reply`.
//!
//! A connection belongs to a runtime (`pool`); a call is sent once, but for a script that the
//! server has forgotten, and has an answer or an error within the limit. Whether to send again is
//! the caller's choice: only the caller knows what a claim that was sent twice has to clean up.

mod argv;
mod fault;
mod link;
mod pool;
mod reply;
mod script;
mod target;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Client, IntoConnectionInfo, RedisError, RedisResult, Value};

use super::{Answered, Page, Scan, Store, StoreKey};
use crate::error::{StoreError, StoreErrorKind};
use crate::record::{
    Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Refuse, RefuseReply, Renew,
    RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime, format,
};
use crate::store::Answer;
use argv::Argv;
use fault::{Fault, misconfigured};
use link::Link;
use pool::Pool;
use reply::Reply;
use script::Step;
use target::Target;

/// How long a call may take if nothing else is said.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(2);

/// A store of records in Redis or Valkey. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct RedisStore {
    pool: Arc<Pool>,
}

impl RedisStore {
    /// Connects to one server, as `redis://[user:password@]host[:port][/database]`.
    ///
    /// # Errors
    /// [`StoreErrorKind::Misconfigured`] for a URL that can not be used, a refused password, or a
    /// server older than 6.2; another kind if the server does not answer within the limit.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let info = url
            .into_connection_info()
            .map_err(|error| misconfigured(format!("redis: {error}")))?;
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(info.set_tcp_settings(tcp))
            .map_err(|error| misconfigured(format!("redis: {error}")))?;
        let store = Self {
            pool: Arc::new(Pool::new(Target::Node(client), DEFAULT_LIMIT)),
        };
        store.within_limit(store.pool.link()).await?;
        Ok(store)
    }

    /// How long a call may take, in all.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.pool.limit()
    }

    /// Runs a step on a key.
    async fn run(&self, step: &Step, key: &StoreKey, argv: &Argv<'_>) -> Answered<Reply> {
        self.within_limit(async {
            let link = self.pool.link().await.map_err(StoreError::before_sending)?;
            let answer = match send(&link, step, key.as_str(), argv).await {
                Ok(answer) => answer,
                Err(error) => return Err(self.failed(&link, error)),
            };
            match answer {
                Value::BulkString(bytes) => reply::decode(bytes),
                other => Err(StoreError::new(
                    StoreErrorKind::Protocol,
                    format!("redis: a script answered {other:?}"),
                )),
            }
        })
        .await
    }

    fn failed(&self, link: &Arc<Link>, error: RedisError) -> StoreError {
        let fault = Fault::from(error);
        if fault.replace {
            self.pool.discard(link);
        }
        fault.error
    }

    async fn within_limit<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.limit(), call).await {
            Ok(result) => result,
            Err(elapsed) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                format!("redis: no answer within {:?}", self.limit()),
            )
            .with_source(elapsed)),
        }
    }
}

/// By hash, or whole to a server that does not have it, or not any more.
async fn send(link: &Link, step: &Step, key: &str, argv: &Argv<'_>) -> RedisResult<Value> {
    match link.send(&step.by_hash(link.dialect, key, argv)).await {
        Err(error) if error.code() == Some("NOSCRIPT") => {
            link.send(&step.by_source(link.dialect, key, argv)).await
        }
        other => other,
    }
}

impl Store for RedisStore {
    async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
        self.run(&script::CLAIM, key, &argv::claim(op))
            .await?
            .into_verb()
    }

    async fn renew(&self, key: &StoreKey, op: &Renew) -> Answered<RenewReply> {
        let argv = argv::renew(op);
        let mut answer = self.run(&script::RENEW, key, &argv).await?;
        if answer.reply == Reply::Nothing
            && let Some(echo) = argv::renew_echo(op)
        {
            answer = self.run(&script::RENEW, key, &argv.with_echo(echo)).await?;
        }
        answer.into_verb()
    }

    async fn settle(&self, key: &StoreKey, op: &Settle) -> Answered<SettleReply> {
        let argv = argv::settle(op);
        let mut answer = self.run(&script::SETTLE, key, &argv).await?;
        if answer.reply == Reply::Nothing
            && let Some(echo) = argv::settle_echo(op)
        {
            answer = self
                .run(&script::SETTLE, key, &argv.with_echo(echo))
                .await?;
        }
        answer.into_verb()
    }

    async fn issue(&self, key: &StoreKey, op: &Issue) -> Answered<IssueReply> {
        self.run(&script::ISSUE, key, &argv::issue(op))
            .await?
            .into_verb()
    }

    async fn refuse(&self, key: &StoreKey, op: &Refuse) -> Answered<RefuseReply> {
        self.run(&script::REFUSE, key, &argv::refuse(op))
            .await?
            .into_verb()
    }

    async fn forget(&self, key: &StoreKey, op: &Forget) -> Answered<OperatorReply> {
        self.run(&script::FORGET, key, &argv::forget(op))
            .await?
            .into_verb()
    }

    async fn resolve(&self, key: &StoreKey, op: &Resolve) -> Answered<OperatorReply> {
        self.run(&script::RESOLVE, key, &argv::resolve(op))
            .await?
            .into_verb()
    }

    async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
        let Answer { now, reply } = self.run(&script::PEEK, key, &Argv::NONE).await?;
        let reply = slot(reply)?;
        Ok(Answer { now, reply })
    }

    async fn scan(&self, _scan: &Scan) -> Answered<Page> {
        Err(misconfigured("redis: scan"))
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.within_limit(async {
            let link = self.pool.link().await?;
            let time = link.send(&::redis::cmd("TIME")).await;
            let time = time.and_then(|value| Ok(::redis::from_redis_value::<(u64, u64)>(value)?));
            let (seconds, micros) = time.map_err(|error| self.failed(&link, error))?;
            Ok(StoreTime::from_micros(seconds * 1_000_000 + micros))
        })
        .await
    }
}

fn slot(reply: Reply) -> Result<Slot, StoreError> {
    match reply {
        Reply::Nothing => Ok(Slot::Absent),
        Reply::Damaged => Ok(Slot::Damaged),
        Reply::Record { expires_at, bytes } => {
            Ok(format::decode(bytes, expires_at).map_or(Slot::Damaged, Slot::Record))
        }
        _ => Err(StoreError::new(
            StoreErrorKind::Protocol,
            "redis: a peek was answered with the reply of another script",
        )),
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("limit", &self.limit())
            .finish_non_exhaustive()
    }
}
