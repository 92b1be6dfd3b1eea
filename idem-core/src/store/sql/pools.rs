//! A pool per runtime.
//!
//! A connection to a server is served by the runtime that opened it: used from another, it stands
//! still when that one is blocked and is dead when that one has ended. An engine is called from
//! any runtime, and renews from one of its own just because a body may block the caller's. So the
//! given pool serves the runtime in which the store was made (or first used), and every other
//! runtime gets a pool of its own with the same options, for as long as it lives.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::panic::resume_unwind;
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
    /// Where the pool has none at rest and may open one more, a task opens it, which goes on for as
    /// long as `patience` when the call has given up, and leaves it to the pool. Otherwise it would
    /// be thrown away with the call: where a connection takes longer than a call may, as when all
    /// clients come back to a server at once, each would try again for ever, and none would ever
    /// have one. One at rest may turn out to be dead, and is then replaced within the call; a call
    /// that gives up meanwhile leaves one fewer at rest, until there are none.
    pub(super) async fn connection(&self, patience: Duration) -> sqlx::Result<PoolConnection<D>> {
        let pool = self.here();
        if pool.num_idle() > 0 || pool.size() >= pool.options().get_max_connections() {
            return pool.acquire().await;
        }
        let opened = tokio::spawn(async move { by(moment_in(patience), pool.acquire()).await });
        match opened.await {
            Ok(Ok(Some(connection))) => connection,
            Ok(_) => Err(sqlx::Error::PoolTimedOut),
            Err(ended) => match ended.try_into_panic() {
                // As if it had been opened here.
                Ok(panic) => resume_unwind(panic),
                // The runtime ends, and its connections with it.
                Err(_) => Err(sqlx::Error::PoolClosed),
            },
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
        self.open(&runtime)
    }

    fn open(&self, runtime: &Handle) -> Pool<D> {
        let id = runtime.id();
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let place = match others.entry(id) {
            Entry::Occupied(pool) => return pool.get().clone(),
            Entry::Vacant(place) => place,
        };
        let options = self.given.options().clone();
        let pool = options.connect_lazy_with((*self.given.connect_options()).clone());
        place.insert(pool.clone());
        // A runtime that has been shut down drops the task at once, and this needs the lock.
        drop(others);
        let ending = Ending {
            others: Arc::downgrade(&self.others),
            id,
        };
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

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use sqlx::Postgres;
    use sqlx::postgres::PgPoolOptions;
    use tokio::runtime::Runtime;

    use super::*;

    fn pools(home: &Runtime) -> Pools<Postgres> {
        let _home = home.enter();
        let pool = PgPoolOptions::new().connect_lazy("postgres://127.0.0.1/nobody");
        Pools::new(pool.unwrap())
    }

    fn how_many(pools: &Pools<Postgres>) -> usize {
        pools.others.read().unwrap().len()
    }

    #[test]
    fn another_runtime_has_a_pool_for_as_long_as_it_lives() {
        let home = Runtime::new().unwrap();
        let pools = pools(&home);
        let other = Runtime::new().unwrap();
        other.block_on(async {
            pools.here();
            pools.here();
        });
        assert_eq!(how_many(&pools), 1);
        drop(other);
        assert_eq!(how_many(&pools), 0);
    }

    #[test]
    fn a_runtime_that_has_ended_is_served_and_leaves_no_pool() {
        let home = Runtime::new().unwrap();
        let pools = pools(&home);
        let ended = Runtime::new().unwrap();
        let handle = ended.handle().clone();
        drop(ended);

        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            handle.block_on(async { pools.here() });
            say.send(how_many(&pools)).unwrap();
        });
        let left = said.recv_timeout(Duration::from_secs(20));
        assert_eq!(left, Ok(0));
    }
}
