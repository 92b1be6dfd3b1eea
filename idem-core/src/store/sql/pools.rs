//! A pool per runtime.
//!
//! A connection to a server is served by the runtime that opened it: used from another, it stands
//! still when that one is blocked and is dead when that one has ended. An engine is called from
//! any runtime, and renews from one of its own just because a body may block the caller's. So the
//! given pool serves the runtime in which the store was made (or first used), and every other
//! runtime gets a pool of its own with the same options, for as long as it lives. Where those with
//! which the given pool connects are changed, as to another password, the others follow.
//!
//! A connection to a file of SQLite is served by a thread of its own. But bodies may have all that the
//! given pool can open, and what is renewed for them may not wait for that.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use sqlx::Pool;
use tokio::runtime::{Handle, Id};
use tokio::sync::Semaphore;

use super::carried::carried;
use super::dialect::{Dialect, Options};
use super::held::{Heard, Held};

type Others<D> = RwLock<HashMap<Id, Other<D>>>;

pub(super) struct Pools<D: Dialect> {
    given: Lender<D>,
    home: OnceLock<Id>,
    /// Whether there is no other way to the database.
    is_only: bool,
    others: Arc<Others<D>>,
}

impl<D: Dialect> Pools<D> {
    pub(super) fn new(given: Pool<D>) -> Self {
        let here = Handle::try_current().map(|runtime| runtime.id());
        Self {
            is_only: D::is_of_its_pool(&given.connect_options()),
            given: Lender::new(given),
            home: here.map(OnceLock::from).unwrap_or_default(),
            others: Arc::default(),
        }
    }

    /// Where the database is.
    pub(super) fn place(&self) -> String {
        D::place(&self.given.pool.connect_options())
    }

    /// Whether others have the connections that a call of the current runtime waits for: the
    /// database has let one in, or has answered one, for so long; or what has them all is other
    /// work of the caller's, of which nobody here can tell whether it is answered.
    pub(super) fn is_busy(&self, time: Duration) -> bool {
        let here = self.here();
        here.heard.is_within(time) || here.is_in_other_hands()
    }

    /// A connection that is served by the current runtime, in which every call is made.
    pub(super) async fn connection(&self, patience: Duration) -> sqlx::Result<Held<D>> {
        self.here().lend(patience).await
    }

    /// The pool of the current runtime.
    fn here(&self) -> Lender<D> {
        let runtime = Handle::current();
        let id = runtime.id();
        if self.is_only || *self.home.get_or_init(|| id) == id {
            return self.given.clone();
        }
        let options = self.given.pool.connect_options();
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = others.get(&id)
            && Arc::ptr_eq(&other.options, &options)
        {
            return other.lender.clone();
        }
        drop(others);
        self.open(&runtime, options)
    }

    fn open(&self, runtime: &Handle, options: Arc<Options<D>>) -> Lender<D> {
        let id = runtime.id();
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let place = match others.entry(id) {
            Entry::Occupied(mut other) => return other.get_mut().follow(options),
            Entry::Vacant(place) => place,
        };
        let pool = self.given.pool.options().clone();
        let lender = Lender::new(pool.connect_lazy_with((*options).clone()));
        let closed = lender.pool.close_event();
        place.insert(Other {
            lender: lender.clone(),
            options,
        });
        // A runtime that has been shut down drops the task at once, and this needs the lock.
        drop(others);
        let ending = Ending {
            others: Arc::downgrade(&self.others),
            id,
        };
        runtime.spawn(async move {
            let _ending = ending;
            closed.await;
        });
        lender
    }
}

/// The pool of another runtime, and the options of the given one that it connects with.
struct Other<D: Dialect> {
    lender: Lender<D>,
    options: Arc<Options<D>>,
}

impl<D: Dialect> Other<D> {
    fn follow(&mut self, options: Arc<Options<D>>) -> Lender<D> {
        self.lender.pool.set_connect_options((*options).clone());
        self.options = options;
        self.lender.clone()
    }
}

/// A pool, and the line before it.
///
/// As many calls as the pool has connections are let to it at once. The others wait where they can
/// leave without a trace: what has been begun for a call goes on when that has left, and a line of
/// such remains would keep those who still wait from their turn.
struct Lender<D: Dialect> {
    pool: Pool<D>,
    turns: Arc<Semaphore>,
    heard: Arc<Heard>,
    /// Pointed to by each call that has a connection, or opens one.
    lent: Arc<()>,
}

// Not derived: that would ask for a database that can be cloned.
impl<D: Dialect> Clone for Lender<D> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            turns: Arc::clone(&self.turns),
            heard: Arc::clone(&self.heard),
            lent: Arc::clone(&self.lent),
        }
    }
}

impl<D: Dialect> Lender<D> {
    fn new(pool: Pool<D>) -> Self {
        let connections = pool.options().get_max_connections();
        let turns = usize::try_from(connections).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            pool,
            turns: Arc::new(Semaphore::new(turns.min(Semaphore::MAX_PERMITS))),
            heard: Arc::default(),
            lent: Arc::default(),
        }
    }

    fn is_in_other_hands(&self) -> bool {
        is_full(&self.pool) && Arc::weak_count(&self.lent) == 0
    }

    /// A connection. When the call has given up while one was tested or opened, that goes on for as
    /// long as `patience`, and the connection is there for a later call.
    async fn lend(self, patience: Duration) -> sqlx::Result<Held<D>> {
        let turn = self.turns.acquire_owned().await;
        // Nobody closes it.
        let turn = turn.map_err(|_| sqlx::Error::PoolClosed)?;
        let (pool, heard, ours) = (self.pool, self.heard, self.lent);
        let lent = async move {
            // In a full pool nothing is opened or tested until somebody gives a connection back.
            let opens = (!is_full(&pool)).then(|| Arc::downgrade(&ours));
            let connection = pool.acquire().await?;
            let lent = opens.unwrap_or_else(|| Arc::downgrade(&ours));
            if pool.options().get_test_before_acquire() {
                heard.now();
            }
            Ok(Held::new(connection, heard, (turn, lent)))
        };
        carried(patience, lent, async |lent: sqlx::Result<Held<D>>| {
            if let Ok(unused) = lent {
                let _ = unused.after(Ok(()));
            }
        })
        .await
    }
}

/// Whether a pool has no connection left, nor may open one.
fn is_full<D: Dialect>(pool: &Pool<D>) -> bool {
    pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections()
}

/// Dropped when its runtime ends.
struct Ending<D: Dialect> {
    others: Weak<Others<D>>,
    id: Id,
}

impl<D: Dialect> Drop for Ending<D> {
    fn drop(&mut self) {
        if let Some(others) = self.others.upgrade() {
            let other = others
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&self.id);
            // Outside the lock: this drops connections.
            drop(other);
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
    fn another_runtime_connects_as_the_given_pool_does_by_now() {
        let home = Runtime::new().unwrap();
        let pools = pools(&home);
        let other = Runtime::new().unwrap();
        let used = || other.block_on(async { pools.here().pool.connect_options() });
        let first = used();
        assert!(Arc::ptr_eq(&used(), &first));

        let given = &pools.given.pool;
        given.set_connect_options((*first).clone().username("renewed"));
        assert_eq!(used().get_username(), "renewed");
        assert_eq!(how_many(&pools), 1);
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
