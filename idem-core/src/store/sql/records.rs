//! The verbs, over any of the databases: lock, read, decide by `step`, write, commit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::Pool;
use sqlx::pool::PoolConnection;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::dialect::Dialect;
use super::fault::Fault;
use super::pools::Pools;
use super::row::{Address, Row};
use super::span::{self, Span};
use crate::driver::moment_in;
use crate::error::{StoreError, StoreErrorKind};
use crate::record::{Slot, StoreTime};
use crate::store::watchers::{MayEnd, Watchers};
use crate::store::{Answer, Answered, Finding, Page, Scan, StoreKey, Watch};

/// The records of one table.
pub(super) struct Records<D: Dialect> {
    pools: Arc<Pools<D>>,
    limit: Duration,
    writers: Arc<Semaphore>,
    watchers: Arc<Watchers>,
}

// Not derived: that would ask for a database that can be cloned.
impl<D: Dialect> Clone for Records<D> {
    fn clone(&self) -> Self {
        Self {
            pools: Arc::clone(&self.pools),
            limit: self.limit,
            writers: Arc::clone(&self.writers),
            watchers: Arc::clone(&self.watchers),
        }
    }
}

impl<D: Dialect> Records<D> {
    pub(super) fn new(pool: Pool<D>, limit: Duration) -> Self {
        Self {
            pools: Arc::new(Pools::new(pool)),
            limit,
            writers: Arc::new(Semaphore::new(D::WRITERS)),
            watchers: Arc::default(),
        }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Runs `verb` on the record at `key`, as one step.
    pub(super) async fn write<R>(
        &self,
        key: &StoreKey,
        verb: impl Fn(Slot, StoreTime) -> (Slot, R) + Sync,
    ) -> Answered<R> {
        let at = Address::of(key);
        self.within_limit(|| self.write_once(&at, &verb)).await
    }

    /// The same, and wakes those in this process who wait for the end that it may be.
    pub(super) async fn end<R: MayEnd>(
        &self,
        key: &StoreKey,
        verb: impl Fn(Slot, StoreTime) -> (Slot, R) + Sync,
    ) -> Answered<R> {
        let answer = self.write(key, verb).await?;
        self.watchers.hear(&key.text, &answer.reply);
        Ok(answer)
    }

    pub(super) fn watch(&self, key: &StoreKey) -> Watch {
        self.watchers.subscribe(&key.text)
    }

    /// `None` if the row was changed by somebody who did not wait for its lock.
    async fn write_once<R>(
        &self,
        at: &Address,
        verb: impl Fn(Slot, StoreTime) -> (Slot, R),
    ) -> Result<Option<Answer<R>>, Fault> {
        // Never closed, and if it were: the database has locks of its own.
        let _turn = self.writers.acquire().await.ok();
        let undone = |error| Self::fault(error).before_commit();
        let locked = D::lock(self.connection().await.map_err(undone)?, at, self.limit / 2).await;
        let (mut held, found) = locked.map_err(undone)?;
        let (before, now) = (found.slot(), found.now);
        let (after, reply) = verb(before.clone(), now);
        let after = after.live(now);
        if after == before.live(now) {
            D::release(held).await.map_err(undone)?;
            return Ok(Some(Answer { now, reply }));
        }
        let row = match &after {
            Slot::Record(record) => Some(Row::of(record)),
            Slot::Absent | Slot::Damaged => None,
        };
        let put = D::put(&mut held, at, found.row.as_ref(), row.as_ref(), now).await;
        if !put.map_err(undone)? {
            D::release(held).await.map_err(undone)?;
            return Ok(None);
        }
        D::commit(held).await.map_err(Self::fault)?;
        Ok(Some(Answer { now, reply }))
    }

    pub(super) async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
        let at = Address::of(key);
        let found = self
            .reading(|| async { D::read(&mut *self.connection().await?, &at).await })
            .await?;
        Ok(Answer {
            now: found.now,
            reply: found.slot().visible(found.now),
        })
    }

    pub(super) async fn scan(&self, scan: &Scan) -> Answered<Page> {
        let wanted = Span::of(scan)?;
        let page = || async { D::page(&mut *self.connection().await?, &wanted).await };
        let rows = self.reading(page).await?;
        let is_full = i64::try_from(rows.len()).is_ok_and(|count| count >= wanted.rows);
        let last = rows.last().filter(|_| is_full);
        let next = last.map(|row| span::cursor(&row.business_type, &row.business_key));
        let now = match rows.first() {
            Some(row) => row.found.now,
            None => self.now().await?,
        };
        let entries = rows
            .into_iter()
            .map(|row| {
                let text = span::text(&row.business_type, &row.business_key);
                (text, row.found.slot().visible(now))
            })
            .filter(|(text, slot)| text.starts_with(&scan.prefix) && *slot != Slot::Absent)
            .collect();
        Ok(Answer {
            now,
            reply: Page { entries, next },
        })
    }

    pub(super) async fn now(&self) -> Result<StoreTime, StoreError> {
        self.reading(|| D::now(self.connection())).await
    }

    pub(super) async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.reading(|| async { D::check(&mut *self.connection().await?).await })
            .await
    }

    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        in_runtime()?;
        let connection = self.connection().await.map_err(Self::fault)?;
        D::migrate(connection).await
    }

    pub(super) async fn purge(&self, batch: u32) -> Result<u64, StoreError> {
        self.within_limit(|| async {
            let _turn = self.writers.acquire().await.ok();
            let connection = self.connection().await.map_err(Self::fault)?;
            let purged = D::purge(connection, batch).await;
            purged.map(Some).map_err(Self::fault)
        })
        .await
    }

    async fn connection(&self) -> sqlx::Result<PoolConnection<D>> {
        self.pools.connection(self.limit.saturating_mul(2)).await
    }

    async fn reading<T, F>(&self, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        self.within_limit(|| async { call().await.map(Some).map_err(Self::fault) })
            .await
    }

    /// Repeats `call` while it is only in somebody's way (or answers `None`, for the same
    /// reason), until the limit.
    async fn within_limit<T, F>(&self, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<Option<T>, Fault>>,
    {
        in_runtime()?;
        let deadline = moment_in(self.limit);
        let calls = async {
            let mut pause = Duration::from_millis(1);
            loop {
                match call().await {
                    Ok(Some(value)) => return Ok(value),
                    Ok(None) => {}
                    Err(fault) if fault.is_passing() && Instant::now() + pause < deadline => {}
                    Err(fault) => return Err(fault.into()),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(50));
            }
        };
        match tokio::time::timeout(self.limit, calls).await {
            Ok(result) => result,
            Err(elapsed) => Err(no_answer(self.limit).with_source(elapsed)),
        }
    }

    fn fault(error: sqlx::Error) -> Fault {
        Fault::new(error, D::class)
    }
}

fn no_answer(limit: Duration) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        format!("sql: no answer within {limit:?}"),
    )
}

fn in_runtime() -> Result<(), StoreError> {
    match Handle::try_current() {
        Ok(_) => Ok(()),
        Err(_) => Err(StoreError::new(
            StoreErrorKind::Misconfigured,
            "sql: called from outside a tokio runtime",
        )
        .before_sending()),
    }
}
