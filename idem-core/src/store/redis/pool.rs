//! One connection per runtime, made when it is first needed and replaced when it is of no more use.
//!
//! A connection is driven by a task of the runtime that made it, and ends with it. An engine lives
//! as long as the process and is called from any runtime (each test has its own), so the pool has
//! a home for each and forgets it when the runtime ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::{oneshot, watch};

use super::link::Link;
use super::no_answer;
use super::target::Target;
use crate::error::StoreError;

type Homes = RwLock<HashMap<Id, Arc<Home>>>;

pub(super) struct Pool {
    target: Arc<Target>,
    limit: Duration,
    homes: Arc<Homes>,
}

impl Pool {
    /// A pool whose callers wait at most `limit`.
    pub(super) fn new(target: Target, limit: Duration) -> Self {
        Self {
            target: Arc::new(target),
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
    /// The connection that was asked for last.
    opening: Mutex<Option<Opening>>,
    /// Its drop ends the task that waits for the runtime's end.
    _watched: oneshot::Sender<()>,
}

impl Home {
    fn within(runtime: &Handle, homes: &Arc<Homes>) -> Arc<Self> {
        let (watched, pool_is_gone) = oneshot::channel::<()>();
        let home = Arc::new(Self {
            current: Mutex::default(),
            opening: Mutex::default(),
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
        let current = self.lock();
        current.as_ref().filter(|link| !link.is_silent()).cloned()
    }

    /// Waits for the connection that is being made, or has one made. It is made in a task, and goes
    /// on when those who wait for it have given up: a server that stands still would otherwise be
    /// asked for another by each call, and have all of them to answer when it goes on.
    async fn open(
        self: &Arc<Self>,
        target: &Arc<Target>,
        limit: Duration,
    ) -> Result<Arc<Link>, StoreError> {
        // Less than half of a call's limit, after which an engine sends again: whoever fails here
        // can still say that nothing was sent.
        let patience = limit / 20 * 9;
        let mut opening = self.opening(target, limit);
        match tokio::time::timeout(patience, opening.wait_for(Option::is_some)).await {
            Ok(Ok(opened)) => opened.clone().unwrap_or_else(|| Err(no_answer(patience))),
            // The task has ended with its runtime, or by a panic.
            Ok(Err(ended)) => Err(no_answer(patience).with_source(ended)),
            Err(elapsed) => Err(no_answer(patience).with_source(elapsed)),
        }
    }

    /// What becomes of the connection that is being made.
    fn opening(self: &Arc<Self>, target: &Arc<Target>, limit: Duration) -> Opening {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opening) = opening.as_ref().filter(|opening| is_under_way(opening)) {
            return opening.clone();
        }
        if let Some(link) = self.current() {
            // Made meanwhile.
            return watch::channel(Some(Ok(link))).1;
        }
        let (say, opened) = watch::channel(None);
        *opening = Some(opened.clone());
        let (home, target) = (Arc::clone(self), Arc::clone(target));
        tokio::spawn(async move {
            let opened = home.renewed(&target, limit).await;
            say.send_replace(Some(opened));
        });
        opened
    }

    /// The connection that is silent, if it turns out to be of use; otherwise another.
    async fn renewed(&self, target: &Target, limit: Duration) -> Result<Arc<Link>, StoreError> {
        let silent = self.lock().clone();
        if let Some(link) = silent
            && link.is_of_use().await
        {
            return Ok(link);
        }
        // Closed before another is asked for.
        *self.lock() = None;
        let link = Arc::new(open_in_time(target, limit).await?);
        *self.lock() = Some(Arc::clone(&link));
        Ok(link)
    }
}

/// `None` until it is known.
type Opening = watch::Receiver<Option<Result<Arc<Link>, StoreError>>>;

fn is_under_way(opening: &Opening) -> bool {
    opening.borrow().is_none() && opening.has_changed().is_ok()
}

async fn open_in_time(target: &Target, limit: Duration) -> Result<Link, StoreError> {
    const AT_LEAST: Duration = Duration::from_secs(1);
    let patience = limit.max(AT_LEAST);
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
