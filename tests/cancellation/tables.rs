//! Calls on records that are kept in a database.

use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use idem_core::Idempotency;
use idem_tests::faulty::Faulty;
use idem_tests::mortal::base::Base;
use idem_tests::mortal::places::Placed;
use sqlx::{MySql, Pool, Postgres, Sqlite};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::ground::Ground;
use crate::{duplicates, first, locks, recover, settle_in, takeovers, tokens, waiting};

/// As on Redis: what no busy machine needs for a call.
const LIMIT: Duration = Duration::from_secs(5);

/// As many calls as are at work, and do not wait, at a time.
static AT_WORK: Semaphore = Semaphore::const_new(6);

/// Connections of its own for each call that is dropped, as its runtime ends with it.
pub(crate) struct InTable<D: Base> {
    pub(crate) pool: Pool<D>,
    idem: Idempotency,
    store: Faulty<D::Store>,
    /// A file goes with its calls.
    file: Option<Arc<TempDir>>,
}

// Not derived: that would ask for a database that can be cloned.
impl<D: Base> Clone for InTable<D> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            idem: self.idem.clone(),
            store: self.store.clone(),
            file: self.file.clone(),
        }
    }
}

pub(crate) trait Home: Placed {
    /// Connections to a database with the tables.
    async fn home() -> (Pool<Self>, Option<TempDir>);
}

/// The database of the suite. What made it has a runtime of its own, and leaves no connection.
fn of_the_suite<D: Placed>() -> String {
    let make = || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(D::place()).url
    };
    thread::spawn(make).join().unwrap()
}

impl Home for Postgres {
    async fn home() -> (Pool<Self>, Option<TempDir>) {
        static URL: LazyLock<String> = LazyLock::new(of_the_suite::<Postgres>);
        (Self::open(&URL).unwrap(), None)
    }
}

impl Home for MySql {
    async fn home() -> (Pool<Self>, Option<TempDir>) {
        static URL: LazyLock<String> = LazyLock::new(of_the_suite::<MySql>);
        (Self::open(&URL).unwrap(), None)
    }
}

/// A file of its own: one writer at a time would keep all others waiting.
impl Home for Sqlite {
    async fn home() -> (Pool<Self>, Option<TempDir>) {
        let place = Self::place().await;
        (place.pool, place.keep)
    }
}

impl<D: Home> Ground for InTable<D> {
    type Store = D::Store;

    const AT_ONCE: usize = 6;

    async fn new() -> Self {
        let (pool, file) = D::home().await;
        let store = Faulty::new(D::limited(D::store(pool.clone()), LIMIT));
        let idem = Idempotency::builder(store.clone()).limit(LIMIT);
        Self {
            pool,
            idem: idem.build().unwrap(),
            store,
            file: file.map(Arc::new),
        }
    }

    async fn turn() -> Option<SemaphorePermit<'static>> {
        AT_WORK.acquire().await.ok()
    }

    fn idem(&self) -> &Idempotency {
        &self.idem
    }

    fn store(&self) -> &Faulty<D::Store> {
        &self.store
    }

    async fn until_idle(&self) {
        assert_eq!(self.idem.drain(LIMIT * 10).await, 0);
    }
}

/// As many paths as a server has connections for.
const SOME: usize = 12;

/// Many at the same time, for most of it is waiting until a claim can no longer arrive.
fn every_path<D: Home>(more: &[fn()]) {
    let paths: [fn(); 20] = [
        first::a_first_call_at_hold::<InTable<D>>,
        first::a_first_call_with_a_checkpoint_of_its_own::<InTable<D>>,
        first::a_first_call_at_rerun::<InTable<D>>,
        first::a_first_call_that_fails::<InTable<D>>,
        first::a_first_call_that_is_forgotten::<InTable<D>>,
        duplicates::a_duplicate_that_replays::<InTable<D>>,
        duplicates::a_duplicate_of_an_outcome_that_nobody_knows::<InTable<D>>,
        waiting::a_duplicate_that_waits_and_is_woken::<InTable<D>>,
        waiting::a_duplicate_that_waits_and_has_its_turn::<InTable<D>>,
        takeovers::a_takeover_at_hold::<InTable<D>>,
        takeovers::a_takeover_in_doubt_at_rerun::<InTable<D>>,
        recover::a_takeover_that_hears_that_nothing_was_done::<InTable<D>>,
        recover::a_takeover_that_hears_that_all_was_done::<InTable<D>>,
        locks::an_acquire::<InTable<D>>,
        locks::an_acquire_that_waits_for_the_holder::<InTable<D>>,
        locks::a_release::<InTable<D>>,
        locks::a_locked_function::<InTable<D>>,
        tokens::a_consume::<InTable<D>>,
        tokens::a_call_with_a_token::<InTable<D>>,
        tokens::a_token_that_is_handed_back::<InTable<D>>,
    ];
    let paths = [&paths, more].concat();
    for some in paths.chunks(SOME) {
        thread::scope(|scope| {
            for path in some {
                scope.spawn(path);
            }
        });
    }
}

#[test]
fn calls_on_postgres() {
    every_path::<Postgres>(&[
        settle_in::at_hold::<Postgres>,
        settle_in::at_rerun::<Postgres>,
    ]);
}

#[test]
fn calls_on_mariadb() {
    every_path::<MySql>(&[settle_in::at_hold::<MySql>, settle_in::at_rerun::<MySql>]);
}

#[test]
fn calls_on_sqlite() {
    every_path::<Sqlite>(&[settle_in::at_hold::<Sqlite>, settle_in::at_rerun::<Sqlite>]);
}
