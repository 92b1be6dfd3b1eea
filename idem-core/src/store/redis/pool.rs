//! One connection per runtime, made when it is first needed and replaced when it is of no more use.
//!
//! A connection is driven by a task of the runtime that made it, and ends with it. An engine lives
//! as long as the process and is called from any runtime (each test has its own), so the pool has
//! a home for each and forgets it when the runtime ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;

use super::link::Link;
use super::no_answer;
use super::target::Target;
use crate::error::StoreError;

type Homes = RwLock<HashMap<Id, Arc<Home>>>;

pub(super) struct Pool {
    target: Target,
    limit: Duration,
    homes: Arc<Homes>,
}

impl Pool {
    /// A pool whose callers wait at most `limit`.
    pub(super) fn new(target: Target, limit: Duration) -> Self {
        Self {
            target,
            limit,
            homes: Arc::default(),
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// The connection of the current runtime.
    pub(super) async fn link(&self) -> Result<Arc<Link>, StoreError> {
        let home = self.home();
        if let Some(link) = home.current() {
            return Ok(link);
        }
        // Boxed: it is rare, and would be most of every call's future.
        Box::pin(home.open(&self.target, self.limit)).await
    }

    /// Takes `link` out of use, if it still is in use.
    pub(super) fn discard(&self, link: &Arc<Link>) {
        let homes = self.homes.read().unwrap_or_else(PoisonError::into_inner);
        for home in homes.values() {
            let mut current = home.lock();
            if current.as_ref().is_some_and(|used| Arc::ptr_eq(used, link)) {
                *current = None;
            }
        }
    }

    /// What belongs to the current runtime, in which every call is made.
    fn home(&self) -> Arc<Home> {
        let runtime = Handle::current();
        let id = runtime.id();
        let homes = self.homes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = homes.get(&id) {
            return Arc::clone(home);
        }
        drop(homes);
        // Made before the lock is taken: a runtime that is shutting down drops the task at once.
        let home = Home::within(&runtime, &self.homes);
        let mut homes = self.homes.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(homes.entry(id).or_insert(home))
    }
}

/// What the pool keeps for one runtime.
struct Home {
    current: Mutex<Option<Arc<Link>>>,
    /// Held while a connection is being made; keeps the last failure.
    opening: tokio::sync::Mutex<Option<StoreError>>,
    /// How many times one was made or failed to be.
    openings: AtomicU64,
    /// Its drop ends the task that waits for the runtime's end.
    _watched: oneshot::Sender<()>,
}

impl Home {
    fn within(runtime: &Handle, homes: &Arc<Homes>) -> Arc<Self> {
        let (watched, pool_is_gone) = oneshot::channel::<()>();
        let home = Arc::new(Self {
            current: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            openings: AtomicU64::new(0),
            _watched: watched,
        });
        let ending = Ending {
            homes: Arc::downgrade(homes),
            id: runtime.id(),
            home: Arc::downgrade(&home),
        };
        runtime.spawn(async move {
            let _ending = ending;
            _ = pool_is_gone.await;
        });
        home
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<Arc<Link>> {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|link| link.is_silent()) {
            *current = None;
        }
        current.clone()
    }

    /// Makes a connection, or waits for the caller that is making one and shares what it gets.
    async fn open(&self, target: &Target, limit: Duration) -> Result<Arc<Link>, StoreError> {
        let before = self.openings.load(Ordering::Acquire);
        let mut last_failure = self.opening.lock().await;
        if let Some(link) = self.current() {
            return Ok(link);
        }
        if let Some(failure) = &*last_failure
            && self.openings.load(Ordering::Acquire) != before
        {
            return Err(failure.clone());
        }
        let opened = open_in_time(target, limit).await.map(Arc::new);
        self.openings.fetch_add(1, Ordering::Release);
        *last_failure = opened.as_ref().err().cloned();
        let link = opened?;
        *self.lock() = Some(Arc::clone(&link));
        Ok(link)
    }
}

/// Less than half of a call's limit, after which an engine sends again: whoever fails here can
/// still say that nothing was sent.
async fn open_in_time(target: &Target, limit: Duration) -> Result<Link, StoreError> {
    let patience = limit * 9 / 20;
    match tokio::time::timeout(patience, target.open(limit)).await {
        Ok(opened) => opened,
        Err(elapsed) => Err(no_answer(patience).with_source(elapsed)),
    }
}

/// Dropped when its runtime ends, or with its home.
struct Ending {
    homes: Weak<Homes>,
    id: Id,
    home: Weak<Home>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(homes) = self.homes.upgrade() else {
            return;
        };
        let mut homes = homes.write().unwrap_or_else(PoisonError::into_inner);
        // A later runtime may have the same id.
        let is_mine = |home: &Arc<Home>| std::ptr::eq(Arc::as_ptr(home), self.home.as_ptr());
        let home = homes
            .get(&self.id)
            .is_some_and(is_mine)
            .then(|| homes.remove(&self.id));
        drop(homes);
        // Outside the lock: this drops a connection, and with it tasks.
        drop(home);
    }
}
