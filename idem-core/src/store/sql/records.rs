//! The verbs, over any of the databases: lock, read, decide by `step`, write, commit.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::Pool;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::carried::{carried, nothing};
use super::dialect::Dialect;
use super::fault::Fault;
use super::held::Held;
use super::pools::Pools;
use super::row::{Address, Found, Row};
use super::span::{self, Span};
use crate::driver::moment_in;
use crate::error::{StoreError, StoreErrorKind};
use crate::record::{Slot, StoreTime};
use crate::store::watchers::{MayEnd, Watchers};
use crate::store::{Answer, Answered, Finding, Page, Scan, StoreKey, Watch};

/// How many rows a purge deletes at most: MySQL names each of them in a statement, which has room for
/// 65,535, and a call has a limit.
const MOST_PURGED: u32 = 10_000;

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
        let at = Arc::new(Address::of(key));
        self.within_limit(|| self.write_once(&at, moment_in(self.wait()), &verb))
            .await
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
    pub(super) async fn write_once<R>(
        &self,
        at: &Arc<Address>,
        until: Instant,
        verb: impl Fn(Slot, StoreTime) -> (Slot, R),
    ) -> Result<Option<Answer<R>>, Fault> {
        let locked = self.lock(at, until).await?;
        let (before, now) = (locked.found.slot(), locked.found.now);
        let (after, reply) = verb(before.clone(), now);
        let after = after.live(now);
        if after == before.live(now) {
            self.carried(locked.release()).await?;
            return Ok(Some(Answer { now, reply }));
        }
        let row = match &after {
            Slot::Record(record) => Some(Row::of(record)),
            Slot::Absent | Slot::Damaged => None,
        };
        let is_written = self.carried(locked.write(Arc::clone(at), row)).await?;
        Ok(is_written.then_some(Answer { now, reply }))
    }

    /// How long a call waits for what others have: less than half of the limit, after which an engine
    /// sends again. Whoever fails by then can still say that nothing was sent, and leaves nothing to be
    /// given up; and who finds the key locked hears so, which is another answer than none.
    pub(super) fn wait(&self) -> Duration {
        self.limit / 5 * 2
    }

    async fn lock(&self, at: &Arc<Address>, until: Instant) -> Result<Locked<D>, Fault> {
        let deadline = until.into();
        let turn = Arc::clone(&self.writers).acquire_owned();
        let Ok(turn) = tokio::time::timeout_at(deadline, turn).await else {
            return Err(Fault::locked());
        };
        // Never closed, and if it were: the database has locks of its own.
        let turn = turn.ok();
        let connection = tokio::time::timeout_at(deadline, self.connection()).await;
        let connection = connection.unwrap_or_else(|_| Err(self.too_late()));
        let connection = connection.map_err(Fault::before_commit)?;
        let (at, server_patience) = (Arc::clone(at), self.limit / 4);
        let lock = async move {
            let (held, found) = D::lock(connection, &at, server_patience).await?;
            Ok(Locked { held, found, turn })
        };
        let lock = carried(self.patience(), lock, async |locked: sqlx::Result<_>| {
            if let Ok(locked) = locked {
                let _ = Locked::<D>::release(locked).await;
            }
        });
        match tokio::time::timeout_at(deadline, lock).await {
            Ok(locked) => locked.map_err(Self::undone),
            Err(_) => Err(self.silent().await),
        }
    }

    /// What it means that there is no lock yet: MySQL waits in whole seconds, SQLite for as long as
    /// its pool was told. A database that answers meanwhile is there, and somebody has the key.
    pub(super) async fn silent(&self) -> Fault {
        match tokio::time::timeout(self.limit / 20, self.now()).await {
            Ok(Ok(_)) => Fault::locked(),
            // Others wait for it with all the connections there are.
            _ if self.pools.is_busy(self.limit) => Fault::locked(),
            _ => self.too_late(),
        }
    }

    pub(super) async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
        let at = Arc::new(Address::of(key));
        let peek = || async { self.committed(&at, self.limit).await.map(Some) };
        let found = self.within_limit(peek).await?;
        Ok(Answer {
            now: found.now,
            reply: found.slot().visible(found.now),
        })
    }

    pub(super) async fn scan(&self, scan: &Scan) -> Answered<Page> {
        let wanted = Arc::new(Span::of(scan)?);
        let page = |mut held: Held<D>| {
            let wanted = Arc::clone(&wanted);
            async move {
                let rows = D::page(held.connection()?, &wanted).await;
                held.after(rows)
            }
        };
        let rows = self.reading(self.limit, page).await?;
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
        if let Some(now) = D::clock() {
            return Ok(now);
        }
        let now = async |mut held: Held<D>| {
            let now = D::now(held.connection()?).await;
            held.after(now)
        };
        // A claim may be asked behind it.
        self.reading(self.wait(), now).await
    }

    pub(super) async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let check = async |mut held: Held<D>| {
            let findings = D::check(held.connection()?).await;
            held.after(findings)
        };
        self.reading(self.limit, check).await
    }

    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        in_runtime()?;
        let connection = self.connection().await?;
        self.carried(D::migrate(connection)).await
    }

    pub(super) async fn purge(&self, batch: u32) -> Result<u64, StoreError> {
        let begin = Instant::now();
        let purged = self
            .within_limit(|| async {
                let turn = Arc::clone(&self.writers).acquire_owned().await.ok();
                let connection = self.connection().await?;
                let purge = async move {
                    let _turn = turn;
                    D::purge(connection, batch.min(MOST_PURGED))
                        .await
                        .map_err(Self::fault)
                };
                self.carried(purge).await.map(Some)
            })
            .await;
        // Other processes look for the file only now and then, and would hardly find it free between
        // two batches.
        if D::IS_LOCKED_AS_A_WHOLE && !matches!(purged, Ok(0)) {
            tokio::time::sleep((begin.elapsed() * 3).min(self.limit)).await;
        }
        purged
    }

    async fn connection(&self) -> Result<Held<D>, Fault> {
        match self.pools.connection(self.patience()).await {
            Ok(connection) => Ok(connection),
            Err(sqlx::Error::PoolTimedOut) => Err(self.too_late()),
            Err(sqlx::Error::Io(error)) => {
                let why = format!("no connection to {}: {error}", self.pools.place());
                Err(Self::fault(io::Error::new(error.kind(), why).into()))
            }
            Err(error) => Err(Self::fault(error).while_connecting()),
        }
    }

    /// There was no connection in time. Where others have them, they may have them for the very
    /// record.
    fn too_late(&self) -> Fault {
        let place = self.pools.place();
        if self.pools.is_busy(self.limit) {
            return Fault::busy(&place);
        }
        let why = format!(
            "no connection to {place} in time; is the database there, and has the pool enough of them?"
        );
        Self::undone(io::Error::new(io::ErrorKind::TimedOut, why).into())
    }

    /// How long what a call has begun may go on without it. A connection that is silent for so long
    /// is of no more use, and one that takes so long to be opened would help nobody.
    fn patience(&self) -> Duration {
        const AT_LEAST: Duration = Duration::from_secs(2);
        self.limit.saturating_mul(2).max(AT_LEAST)
    }

    /// Carries to its end what leaves nothing to put in order.
    fn carried<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        carried(self.patience(), work, nothing)
    }

    /// Waits for a connection for as long as `patience`.
    async fn reading<T, F>(
        &self,
        patience: Duration,
        read: impl Fn(Held<D>) -> F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = sqlx::Result<T>> + Send + 'static,
    {
        let read = &read;
        self.within_limit(|| async move { self.read_once(patience, read).await.map(Some) })
            .await
    }

    pub(super) async fn read_once<T, F>(
        &self,
        patience: Duration,
        read: impl Fn(Held<D>) -> F,
    ) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = sqlx::Result<T>> + Send + 'static,
    {
        let held = tokio::time::timeout(patience, self.connection()).await;
        let held = held.unwrap_or_else(|_| Err(self.too_late()))?;
        self.carried(read(held)).await.map_err(Self::fault)
    }

    /// Repeats `call` while it is only in somebody's way (or answers `None`, for the same
    /// reason), until the limit.
    pub(super) async fn within_limit<T, F>(&self, call: impl Fn() -> F) -> Result<T, StoreError>
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
            Err(elapsed) => Err(no_answer(&self.pools.place(), self.limit).with_source(elapsed)),
        }
    }

    fn fault(error: sqlx::Error) -> Fault {
        Fault::new(error, D::class)
    }

    fn undone(error: sqlx::Error) -> Fault {
        Self::fault(error).before_commit()
    }
}

/// A key that is locked, with what was found there.
struct Locked<D: Dialect> {
    held: D::Held,
    found: Found,
    turn: Option<OwnedSemaphorePermit>,
}

impl<D: Dialect> Locked<D> {
    /// Leaves it as it is.
    async fn release(self) -> Result<(), Fault> {
        let _turn = self.turn;
        D::release(self.held).await.map_err(Records::<D>::undone)
    }

    /// Writes `row` in place of what was found, and commits. Says `false` if something else stands
    /// there by now, and leaves it.
    async fn write(self, at: Arc<Address>, row: Option<Row>) -> Result<bool, Fault> {
        let Self {
            mut held,
            found,
            turn: _turn,
        } = self;
        let put = D::put(&mut held, &at, found.row.as_ref(), row.as_ref(), found.now).await;
        let is_put = put.map_err(Records::<D>::undone)?;
        if is_put {
            D::commit(held).await.map_err(Records::<D>::fault)?;
        } else {
            D::release(held).await.map_err(Records::<D>::undone)?;
        }
        Ok(is_put)
    }
}

fn no_answer(place: &str, limit: Duration) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        format!("sql: no answer from {place} within {limit:?}"),
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
