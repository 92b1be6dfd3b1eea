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
use tokio::runtime::{Handle, Id};
use tokio::sync::Mutex;

use super::dialect::Dialect;
use crate::driver::{by, moment_in};

type Others<D> = RwLock<HashMap<Id, Place<D>>>;

pub(super) struct Pools<D: Dialect> {
    given: Place<D>,
    home: OnceLock<Id>,
    others: Arc<Others<D>>,
}

/// A pool, and whose turn it is to open a connection.
struct Place<D: Dialect> {
    pool: Pool<D>,
    opening: Arc<Mutex<()>>,
}

// Not derived: that would ask for a database that can be cloned.
impl<D: Dialect> Clone for Place<D> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            opening: Arc::clone(&self.opening),
        }
    }
}

impl<D: Dialect> Place<D> {
    fn new(pool: Pool<D>) -> Self {
        let opening = Arc::default();
        Self { pool, opening }
    }

    /// Whether the next who asks would have to open a connection.
    fn lacks_one(&self) -> bool {
        let most = self.pool.options().get_max_connections();
        self.pool.num_idle() == 0 && self.pool.size() < most
    }

    /// Opens one for whoever comes next.
    async fn open_one(&self, patience: Duration) {
        let turn = Arc::clone(&self.opening).lock_owned().await;
        if self.lacks_one() {
            let pool = self.pool.clone();
            let opened = tokio::spawn(async move {
                // It goes back into its pool. If there is none, who comes next hears why.
                drop(by(moment_in(patience), pool.acquire()).await);
                drop(turn);
            });
            let _ = opened.await;
        }
    }
}

impl<D: Dialect> Pools<D> {
    pub(super) fn new(given: Pool<D>) -> Self {
        let here = Handle::try_current().map(|runtime| runtime.id());
        Self {
            given: Place::new(given),
            home: here.map(OnceLock::from).unwrap_or_default(),
            others: Arc::default(),
        }
    }

    /// The pool of the current runtime, in which every call is made.
    pub(super) fn here(&self) -> Pool<D> {
        self.place().pool
    }

    /// The same, when it has a connection to give, or must not have more.
    ///
    /// Connections are opened one at a time, and on after a call has no more time for it, but not
    /// longer than `patience`. What a call has begun to open would be thrown away with the call; and
    /// where all clients come back at once, and a connection takes longer than a call may, each of
    /// them would try again for ever, and none would ever have one.
    pub(super) async fn ready(&self, patience: Duration) -> Pool<D> {
        let place = self.place();
        if place.lacks_one() {
            place.open_one(patience).await;
        }
        place.pool
    }

    fn place(&self) -> Place<D> {
        let runtime = Handle::current();
        let id = runtime.id();
        if !D::IS_SERVED_BY_A_RUNTIME || *self.home.get_or_init(|| id) == id {
            return self.given.clone();
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = others.get(&id) {
            return place.clone();
        }
        drop(others);
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let place = others.entry(id).or_insert_with(|| self.open(&runtime));
        place.clone()
    }

    fn open(&self, runtime: &Handle) -> Place<D> {
        let ending = Ending {
            others: Arc::downgrade(&self.others),
            id: runtime.id(),
        };
        let given = &self.given.pool;
        let options = given.options().clone();
        let pool = options.connect_lazy_with((*given.connect_options()).clone());
        let closed = pool.close_event();
        runtime.spawn(async move {
            let _ending = ending;
            closed.await;
        });
        Place::new(pool)
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
            let place = others
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&self.id);
            // Outside the lock: this drops connections.
            drop(place);
        }
    }
}
