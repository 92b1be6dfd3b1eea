//! What operators and programs do with records from outside.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;

use super::Idempotency;
use super::ask::{Unanswered, late};
use super::record_view::RecordView;
use super::records::Records;
use crate::codec::{Codec, Json};
use crate::error::{Context, Error};
use crate::key::Key;
use crate::policy::Policy;
use crate::record::{self, Fence, OperatorReply, RefuseReply, Status, StoreTime};
use crate::store::StoreKey;

/// Whether an operator's word was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// As asked.
    Done,
    /// There is no such record.
    Absent,
    /// It changed since it was read, or its lease is live and `force` was not said.
    Changed,
}

impl From<OperatorReply> for Changes {
    fn from(reply: OperatorReply) -> Self {
        match reply {
            OperatorReply::Done => Self::Done,
            OperatorReply::Changed => Self::Changed,
        }
    }
}

/// What is known of an attempt's effects: [`NotDone`] or [`Done`].
pub trait Verdict {
    /// As the record will say it.
    ///
    /// # Errors
    /// [`Error::ResultUnavailable`] if the result can not be encoded.
    #[doc(hidden)]
    fn encode(&self, context: impl FnOnce() -> Context) -> Result<record::Verdict, Error>;
}

/// It did not happen and can not happen any more: the next call runs the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotDone;

/// It happened, with this result, which duplicates will get: a `T` of the type that the function
/// returns. Nothing can check that here; of another one duplicates get [`Error::ResultUnavailable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done<'a, T>(pub &'a T);

impl Verdict for NotDone {
    fn encode(&self, _: impl FnOnce() -> Context) -> Result<record::Verdict, Error> {
        Ok(record::Verdict::NotDone)
    }
}

impl<T: Serialize> Verdict for Done<'_, T> {
    fn encode(&self, context: impl FnOnce() -> Context) -> Result<record::Verdict, Error> {
        match Json::encode(self.0) {
            Ok(bytes) => Ok(record::Verdict::Done(Some(bytes.into()))),
            Err(error) => Err(Error::ResultUnavailable {
                context: context(),
                reason: error.to_string().into(),
            }),
        }
    }
}

impl Idempotency {
    /// Reads the record of `key` without changing it; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Store`] if the store gave no answer.
    pub async fn peek(&self, key: &Key) -> Result<Option<RecordView>, Error> {
        let answer = self
            .core
            .within_limit(self.core.store.peek(&self.store_key(key)))
            .await?;
        self.core.clock.hear(answer.now);
        Ok(RecordView::new(
            key.as_str().to_owned(),
            answer.reply,
            answer.now,
        ))
    }

    /// Reads the records of all functions whose prefix begins with `prefix`; all with `""`.
    ///
    /// Await it for all at once, or take them [one by one](Records::next).
    pub fn records(&self, prefix: &str) -> Records {
        Records::new(self.clone(), prefix)
    }

    /// Drops the record of `key`, whatever it says: the next call runs the body. What happened
    /// before is forgotten, so know what you do. A live attempt is left alone unless
    /// [forced](Forget::force).
    ///
    /// Await the value to do it.
    ///
    /// # Cancel safety
    /// Dropped while it is awaited, it leaves open whether it was done; so do
    /// [`resolve`](Self::resolve) and [`refuse`](Self::refuse). A refusal can be said again as it is, the
    /// other two [as the record was read](Resolve::as_read): [`Changes::Changed`] may then mean your own
    /// first word. Without that, what is said again may be said of the next attempt.
    pub fn forget(&self, key: &Key) -> Forget {
        Forget {
            idem: self.clone(),
            key: key.clone(),
            as_read: None,
            release: false,
            force: false,
        }
    }

    /// [`forget`](Self::forget) for a record that is not a success.
    pub fn release(&self, key: &Key) -> Forget {
        Forget {
            release: true,
            ..self.forget(key)
        }
    }

    /// Says what the abandoned attempt on `key` has done: [`NotDone`], or [`Done`] with its result. A
    /// live attempt is left alone unless [forced](Resolve::force).
    ///
    /// Await the value to do it; [as it was read](Resolve::as_read), so that what you found out about
    /// one attempt is not said of a later one.
    ///
    /// The result is stored as JSON, as `#[idempotent]` does. A function that has its results
    /// [stored by](crate::Results::stored_by) another codec can not replay it: its duplicates get
    /// [`Error::ResultUnavailable`].
    ///
    /// # Errors
    /// [`Error::Store`] if the store gave no answer, [`Error::ResultUnavailable`] if the result
    /// can not be encoded or is larger than this engine stores; nothing was changed then.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a verdict is a word, and refers to what is large"
    )]
    pub fn resolve(&self, key: &Key, verdict: impl Verdict) -> Resolve {
        let verdict = verdict.encode(|| self.context(key));
        Resolve {
            idem: self.clone(),
            key: key.clone(),
            verdict: verdict.and_then(|verdict| self.storable(key, verdict)),
            as_read: None,
            force: false,
        }
    }

    fn storable(&self, key: &Key, verdict: record::Verdict) -> Result<record::Verdict, Error> {
        let reason = match &verdict {
            record::Verdict::Done(Some(bytes)) => self.core.too_large(bytes),
            _ => None,
        };
        match reason {
            None => Ok(verdict),
            Some(reason) => Err(Error::ResultUnavailable {
                context: self.context(key),
                reason: reason.into(),
            }),
        }
    }

    /// Refuses a request that has not come yet: a Cancel that overtook its Try. A call with `key`
    /// gets [`Error::Refused`] for as long as this engine keeps records where a function does not say:
    /// say [`expire`](Refuse::expire) where the function does, or where the request may come later. A
    /// repeat prolongs nothing.
    ///
    /// Await the value to do it. It is said in the store of this engine: for a function with `tx` that
    /// has to be the table of its records.
    ///
    /// Ok says that nothing has happened, by the word of the bodies that have run. With
    /// `on_abandoned = "rerun"` that is the last one's word, also for those that died before it. Of a success that is not kept, as by `forget = true` or after its time, nothing is known.
    ///
    /// # Errors
    /// If the request came first: [`Error::InProgress`], [`Error::OutcomeUnknown`], or
    /// [`Error::Duplicate`] if it is done. [`Error::TokenRejected`] for the key of a one-time
    /// token. [`Error::InvalidPolicy`] for a time that can not be kept. [`Error::Store`] if the store
    /// gave no answer; it is safe to ask again.
    pub fn refuse(&self, key: &Key) -> Refuse {
        Refuse {
            idem: self.clone(),
            key: key.clone(),
            policy: Policy::new(),
        }
    }

    pub(super) fn store_key(&self, key: &Key) -> StoreKey {
        StoreKey::within(&self.core.namespace, &self.kept(key))
    }

    /// Names the key as the calls on it do.
    fn context(&self, key: &Key) -> Context {
        Context::new(self.kept(key).into_owned(), None)
    }

    fn kept<'a>(&self, key: &'a Key) -> Cow<'a, Key> {
        if self.core.hash_keys {
            Cow::Owned(key.hashed())
        } else {
            Cow::Borrowed(key)
        }
    }
}

/// A record that is about to be dropped: await it. Made by [`Idempotency::forget`].
#[derive(Debug, Clone)]
#[must_use = "nothing happens until this is awaited"]
pub struct Forget {
    idem: Idempotency,
    key: Key,
    as_read: Option<(Fence, Status)>,
    release: bool,
    force: bool,
}

impl Forget {
    /// Also ends a live attempt, and drops foreign bytes. The attempt is told at its next heartbeat,
    /// and its body is dropped; at hold, past its checkpoint, it hears so by
    /// [`lost`](crate::Attempt::lost) alone and runs on: the next call may run beside it.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Only if the record is still as in `view`.
    pub fn as_read(mut self, view: &RecordView) -> Self {
        self.as_read = Some((view.fence, view.status));
        self
    }

    async fn send(self) -> Result<Changes, Error> {
        let (fence, status) = match self.as_read {
            Some(read) => read,
            None => match self.idem.peek(&self.key).await? {
                Some(view) => (view.fence, view.status),
                None => return Ok(Changes::Absent),
            },
        };
        let Self {
            idem,
            key,
            release,
            force,
            ..
        } = self;
        let op = record::Forget {
            fence,
            status,
            release,
            force,
        };
        let store_key = idem.store_key(&key);
        let answer = idem
            .core
            .within_limit(idem.core.store.forget(&store_key, &op))
            .await?;
        Ok(answer.reply.into())
    }
}

/// A word about an attempt that nobody hears of any more: await it. Made by [`Idempotency::resolve`].
#[derive(Debug, Clone)]
#[must_use = "nothing happens until this is awaited"]
pub struct Resolve {
    idem: Idempotency,
    key: Key,
    verdict: Result<record::Verdict, Error>,
    as_read: Option<Fence>,
    force: bool,
}

impl Resolve {
    /// Also of a live attempt, which is told as by [`Forget::force`]: at hold, past its checkpoint, its
    /// body runs on, and after [`NotDone`] the next call may run beside it. Know that it does nothing
    /// any more.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Only of the attempt in `view`: [`Changes::Changed`] if another one has the record by now.
    pub fn as_read(mut self, view: &RecordView) -> Self {
        self.as_read = Some(view.fence);
        self
    }

    async fn send(self) -> Result<Changes, Error> {
        let Self {
            idem, key, force, ..
        } = self;
        let verdict = self.verdict?;
        let fence = match self.as_read {
            Some(fence) => fence,
            None => match idem.peek(&key).await? {
                Some(view) => view.fence,
                None => return Ok(Changes::Absent),
            },
        };
        let op = record::Resolve {
            fence,
            verdict,
            force,
        };
        let store_key = idem.store_key(&key);
        let answer = idem
            .core
            .within_limit(idem.core.store.resolve(&store_key, &op))
            .await?;
        Ok(answer.reply.into())
    }
}

/// A request that is about to be refused: await it. Made by [`Idempotency::refuse`].
#[derive(Debug, Clone)]
#[must_use = "nothing happens until this is awaited"]
pub struct Refuse {
    idem: Idempotency,
    key: Key,
    policy: Policy,
}

impl Refuse {
    /// How long it is refused; as long as its function keeps records, or longer.
    ///
    /// The first word counts: a key that is refused already stays so for as long as was said then, and
    /// the answer is Ok. To say another time, [`forget`](Idempotency::forget) it first; a request that
    /// comes in between runs.
    pub fn expire(mut self, expire: Duration) -> Self {
        self.policy = self.policy.expire(expire);
        self
    }

    async fn send(self) -> Result<(), Error> {
        let Self { idem, key, policy } = self;
        let core = &idem.core;
        let mut op = record::Refuse {
            expire: policy.settings(&core.defaults, &core.times)?.terms.expire,
            not_after: StoreTime::default(),
        };
        let asked = core
            .ask(&idem.store_key(&key), &mut op, &Unanswered::default())
            .await?;
        let context = idem.context(&key);
        Err(match asked.reply {
            RefuseReply::Refused => return Ok(()),
            RefuseReply::InProgress { since, lease_left } => Error::InProgress {
                context,
                running_for: asked.now.since(since),
                retry_after: lease_left,
            },
            RefuseReply::OutcomeUnknown => Error::OutcomeUnknown { context },
            RefuseReply::Completed { .. } | RefuseReply::FailedWith(_) => {
                Error::Duplicate { context }
            }
            RefuseReply::TokenRejected => Error::TokenRejected { context },
            RefuseReply::Damaged => Error::Damaged { context },
            RefuseReply::Late => late().into(),
        })
    }
}

macro_rules! awaited {
    ($($what:ty => $output:ty;)*) => {
        $(impl IntoFuture for $what {
            type Output = Result<$output, Error>;
            type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.send())
            }
        })*
    };
}

awaited! {
    Forget => Changes;
    Resolve => Changes;
    Refuse => ();
}
