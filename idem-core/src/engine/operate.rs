//! What operators and programs do with records from outside.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::Idempotency;
use super::ask::{Unanswered, late};
use crate::codec::{Codec, Json};
use crate::error::{Context, Error};
use crate::key::Key;
use crate::policy::Policy;
use crate::record::{
    self, Fence, OperatorReply, Owner, Processing, Record, RefuseReply, Slot, State, Status,
    StoreTime,
};
use crate::store::{Cursor, Scan, StoreKey};

/// A record, as it was read.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordView {
    /// The key, without the namespace: what [`Key::parse`] takes.
    pub key: String,
    /// Where it is in its life.
    pub status: Status,
    /// The last attempt's number; 0 where none has run.
    pub attempt: u32,
    /// The last attempt's fence.
    pub fence: Fence,
    /// Who has, or had, it.
    pub owner: Owner,
    /// When the last attempt was granted or ended, by the store's clock.
    pub at: StoreTime,
    /// How long ago that was.
    pub age: Duration,
    /// When the store drops the record, from when it was read.
    pub expires_in: Duration,
    /// The attempt that has it, if it is processing.
    pub running: Option<Running>,
    /// The encoded result or error, where one is stored.
    pub payload: Option<Bytes>,
}

/// The attempt of a record that is processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "independent marks, as read")]
pub struct Running {
    /// What is left of its lease; zero if it is abandoned.
    pub lease_left: Duration,
    /// Its lease has lapsed or was given up.
    pub is_abandoned: bool,
    /// Its effects may have begun.
    pub checkpoint: bool,
    /// It follows an attempt that died.
    pub takeover: bool,
    /// Somebody waits for it.
    pub waiters: bool,
}

impl fmt::Debug for RecordView {
    /// Everything but the payload, of which only the size is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordView")
            .field("key", &self.key)
            .field("status", &self.status)
            .field("attempt", &self.attempt)
            .field("fence", &self.fence)
            .field("owner", &self.owner)
            .field("age", &self.age)
            .field("expires_in", &self.expires_in)
            .field("running", &self.running)
            .field("payload_bytes", &self.payload.as_ref().map(Bytes::len))
            .finish_non_exhaustive()
    }
}

impl RecordView {
    fn new(key: String, slot: Slot, now: StoreTime) -> Option<Self> {
        match slot {
            Slot::Absent => None,
            Slot::Damaged => Some(Self {
                key,
                status: Status::Damaged,
                attempt: 0,
                fence: Fence::default(),
                owner: Owner::NOBODY,
                at: now,
                age: Duration::ZERO,
                expires_in: Duration::ZERO,
                running: None,
                payload: None,
            }),
            Slot::Record(record) => Self::of_record(key, &record, now),
        }
    }

    fn of_record(key: String, record: &Record, now: StoreTime) -> Option<Self> {
        let granted = StoreTime::from_micros(record.fence.as_u64());
        let (at, running, payload) = match &record.state {
            State::Processing(attempt) => (attempt.since, Some(Running::new(attempt, now)), None),
            State::Success { at, result } => (*at, None, result.clone()),
            State::Failed { at, error } => (*at, None, error.clone()),
            State::Issued | State::Refused | State::Closed { .. } => (granted, None, None),
        };
        Some(Self {
            key,
            status: record.state.status()?,
            attempt: record.attempt,
            fence: record.fence,
            owner: record.owner,
            at,
            age: now.since(at),
            expires_in: record.expires_at.since(now),
            running,
            payload,
        })
    }
}

impl Running {
    fn new(attempt: &Processing, now: StoreTime) -> Self {
        Self {
            lease_left: attempt.lease_until.since(now),
            is_abandoned: attempt.lease_until.has_passed(now),
            checkpoint: attempt.checkpoint,
            takeover: attempt.takeover,
            waiters: attempt.waiters,
        }
    }
}

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

/// It happened, with this result, which duplicates will get.
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
        Records {
            idem: self.clone(),
            prefix: format!("{}:{prefix}", self.core.namespace),
            page: Vec::new().into_iter(),
            place: Place::First,
        }
    }

    /// Drops the record of `key`, whatever it says: the next call runs the body. What happened
    /// before is forgotten, so know what you do. A live attempt is left alone unless
    /// [forced](Forget::force).
    ///
    /// Await the value to do it.
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

    /// Says what the abandoned attempt on `key` has done: [`NotDone`], or [`Done`] with its result.
    ///
    /// # Errors
    /// [`Error::Store`] if the store gave no answer, [`Error::ResultUnavailable`] if the result
    /// can not be encoded; nothing was changed then.
    pub async fn resolve(&self, key: &Key, verdict: impl Verdict) -> Result<Changes, Error> {
        let verdict = verdict.encode(|| Context::new(key.clone(), None))?;
        let Some(record) = self.peek(key).await? else {
            return Ok(Changes::Absent);
        };
        let op = record::Resolve {
            fence: record.fence,
            verdict,
            force: false,
        };
        let store_key = self.store_key(key);
        let answer = self
            .core
            .within_limit(self.core.store.resolve(&store_key, &op))
            .await?;
        Ok(answer.reply.into())
    }

    /// Refuses a request that has not come yet: a Cancel that overtook its Try. A call with `key`
    /// gets [`Error::Refused`] for as long as the engine keeps records.
    ///
    /// # Errors
    /// If the request came first: [`Error::InProgress`], [`Error::OutcomeUnknown`], or
    /// [`Error::Duplicate`] if it is done. [`Error::TokenRejected`] for the key of a one-time
    /// token. [`Error::Store`] if the store gave no answer; it is safe to ask again.
    pub async fn refuse(&self, key: &Key) -> Result<(), Error> {
        let core = &self.core;
        let expire = Policy::new()
            .settings(&core.defaults, &core.times)?
            .terms
            .expire;
        let mut op = record::Refuse {
            expire,
            not_after: StoreTime::default(),
        };
        let asked = core
            .ask(&self.store_key(key), &mut op, &Unanswered::default())
            .await?;
        let context = Context::new(key.clone(), None);
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

    fn store_key(&self, key: &Key) -> StoreKey {
        if self.core.hash_keys {
            StoreKey::within(&self.core.namespace, &key.hashed())
        } else {
            StoreKey::within(&self.core.namespace, key)
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
    /// Also ends a live attempt, which will be told that it was superseded, and drops foreign
    /// bytes.
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

impl IntoFuture for Forget {
    type Output = Result<Changes, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Records that are being read. Made by [`Idempotency::records`].
#[derive(Debug)]
#[must_use = "nothing is read until this is awaited or asked for the next"]
pub struct Records {
    idem: Idempotency,
    prefix: String,
    page: std::vec::IntoIter<RecordView>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    First,
    At(Cursor),
    End,
}

impl Records {
    /// The next record; `None` at the end. A record that changes meanwhile may be seen twice.
    ///
    /// # Errors
    /// [`Error::Store`] if the store gave no answer; calling it again goes on from there.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped before it returns.
    pub async fn next(&mut self) -> Result<Option<RecordView>, Error> {
        const PAGE: u32 = 100;
        loop {
            if let Some(view) = self.page.next() {
                return Ok(Some(view));
            }
            let cursor = match &self.place {
                Place::First => None,
                Place::At(cursor) => Some(cursor.clone()),
                Place::End => return Ok(None),
            };
            let scan = Scan {
                prefix: self.prefix.clone(),
                cursor,
                page_size: PAGE,
            };
            let core = &self.idem.core;
            let answer = core.within_limit(core.store.scan(&scan)).await?;
            let namespace = core.namespace.len() + 1;
            let views = answer.reply.entries.into_iter().filter_map(|(key, slot)| {
                RecordView::new(key[namespace..].to_owned(), slot, answer.now)
            });
            self.page = views.collect::<Vec<_>>().into_iter();
            self.place = answer.reply.next.map_or(Place::End, Place::At);
        }
    }

    async fn all(mut self) -> Result<Vec<RecordView>, Error> {
        let mut all = Vec::new();
        while let Some(view) = self.next().await? {
            all.push(view);
        }
        Ok(all)
    }
}

impl IntoFuture for Records {
    type Output = Result<Vec<RecordView>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.all())
    }
}
