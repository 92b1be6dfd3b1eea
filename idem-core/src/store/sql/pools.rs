//! A pool per runtime.
//!
//! A connection to a server is served by the runtime that opened it: used from another, it stands
//! still when that one is blocked and is dead when that one has ended. An engine is called from
//! any runtime, and renews from one of its own just because a body may block the caller's. So the
//! given pool serves the runtime in which the store was made (or first used), and every other
//! runtime gets a pool of its own with the same options, for as long as it lives.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use sqlx::Pool;
use sqlx::pool::PoolConnection;
use tokio::runtime::{Handle, Id};

use super::dialect::Dialect;
use crate::driver::{by, moment_in};

type Others<D> = RwLock<HashMap<Id, Pool<D>>>;

pub(super) struct Pools<D: Dialect> {
    given: Pool<D>,
    home: OnceLock<Id>,
    others: Arc<Others<D>>,
}

impl<D: Dialect> Pools<D> {
    pub(super) fn new(given: Pool<D>) -> Self {
        let here = Handle::try_current().map(|runtime| runtime.id());
        Self {
            given,
            home: here.map(OnceLock::from).unwrap_or_default(),
            others: Arc::default(),
        }
    }

    /// A connection that is served by the current runtime, in which every call is made.
    ///
    /// One that has yet to be opened is opened by a task, which goes on for as long as `patience`
    /// when the call has given up, and leaves it to the pool. Otherwise it would be thrown away with
    /// the call: where a connection takes longer than a call may, as when all clients come back to a
    /// server at once, each would try again for ever, and none would ever have one.
    pub(super) async fn connection(&self, patience: Duration) -> sqlx::Result<PoolConnection<D>> {
        let pool = self.here();
        if pool.num_idle() > 0 || pool.size() >= pool.options().get_max_connections() {
            return pool.acquire().await;
        }
        let opened = tokio::spawn(async move { by(moment_in(patience), pool.acquire()).await });
        match opened.await {
            Ok(Ok(Some(connection))) => connection,
            Ok(_) => Err(sqlx::Error::PoolTimedOut),
            // The runtime ends, and its connections with it.
            Err(_) => Err(sqlx::Error::PoolClosed),
        }
    }

    /// The pool of the current runtime.
    fn here(&self) -> Pool<D> {
        let runtime = Handle::current();
        let id = runtime.id();
        if !D::IS_SERVED_BY_A_RUNTIME || *self.home.get_or_init(|| id) == id {
            return self.given.clone();
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = others.get(&id) {
            return pool.clone();
        }
        drop(others);
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let pool = others.entry(id).or_insert_with(|| self.open(&runtime));
        pool.clone()
    }

    fn open(&self, runtime: &Handle) -> Pool<D> {
        let ending = Ending {
            others: Arc::downgrade(&self.others),
            id: runtime.id(),
        };
        let options = self.given.options().clone();
        let pool = options.connect_lazy_with((*self.given.connect_options()).clone());
        let closed = pool.close_event();
        runtime.spawn(async move {
            let _ending = ending;
            closed.await;
        });
        pool
    }
}

/// Dropped when its runtime ends.
struct Ending<D: Dialect> {
    others: Weak<Others<D>>,
    id: Id,
}

impl<D: Dialect> Drop for Ending<D> {
    fn drop(&mut self) {
        if let Some(others) = self.others.upgrade() {
            let pool = others
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&self.id);
            // Outside the lock: this drops connections.
            drop(pool);
        }
    }
}
