//! One holder at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use idem_core::store::SqliteStore;
use idem_core::{Error, Idempotency, Key};
use idem_tests::redis::{RedisOptions, RedisServer};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::task::JoinSet;

use crate::rig::{LEASE, LIMIT, Rig, key};
use crate::scene::{held, is_held, lock};

const PATIENCE: Duration = Duration::from_mins(1);

/// What must be written by one at a time.
#[derive(Default)]
struct Room {
    is_taken: AtomicBool,
    fence: AtomicU64,
    visits: AtomicU64,
}

impl Room {
    async fn visit(&self, fence: u64) {
        assert!(!self.is_taken.swap(true, Ordering::SeqCst), "two at once");
        assert!(
            self.fence.swap(fence, Ordering::SeqCst) < fence,
            "a fence fell"
        );
        tokio::task::yield_now().await;
        self.visits.fetch_add(1, Ordering::SeqCst);
        assert!(self.is_taken.swap(false, Ordering::SeqCst));
    }
}

async fn are_never_two_at_once(tasks: u64, idem: &Idempotency) {
    let room = Arc::new(Room::default());
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let (idem, room) = (idem.clone(), room.clone());
        running.spawn(async move {
            for _ in 0..2 {
                let held = idem.lock(key()).wait(PATIENCE).acquire().await.unwrap();
                room.visit(held.fence().as_u64()).await;
                held.release().await.unwrap();
            }
        });
    }
    running.join_all().await;
    assert_eq!(room.visits.load(Ordering::SeqCst), 2 * tasks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_tasks_are_never_two_at_once_in_memory() {
    are_never_two_at_once(50, &Idempotency::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_tasks_are_never_two_at_once_over_redis() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let idem = Idempotency::redis(&server.url()).await.unwrap();
    are_never_two_at_once(50, &idem).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_tasks_are_never_two_at_once_over_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("records.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal);
    let pool = SqlitePoolOptions::new().max_connections(1);
    let store = SqliteStore::new(pool.connect_with(options).await.unwrap());
    store.migrate().await.unwrap();
    let idem = Idempotency::builder(store).limit(Duration::from_secs(20));
    are_never_two_at_once(50, &idem.build().unwrap()).await;
}

#[tokio::test]
async fn a_held_lock_is_refused_at_once_unless_waiting_was_asked_for() {
    let rig = Rig::with(|builder| builder.defaults(idem_core::Policy::new().wait_in_progress()));
    let first = held(&rig).await;
    rig.clock.advance(LEASE / 4);
    let refused = lock(&rig).message("somebody is at it").acquire().await;
    let Err(error @ Error::InProgress { retry_after, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(*retry_after, LEASE * 3 / 4);
    assert_eq!(error.message(), "somebody is at it");
    let text = error.to_string();
    assert!(
        text.contains("is held") && text.contains("`wait`"),
        "{text}"
    );
    let refused = lock(&rig).wait(PATIENCE).try_acquire().await;
    assert!(is_held(&refused), "{refused:?}");
    first.release().await.unwrap();
    held(&rig).await.release().await.unwrap();
}

#[tokio::test]
async fn a_waiter_whose_time_is_over_is_refused() {
    let rig = Rig::new();
    let _first = held(&rig).await;
    let refused = lock(&rig).wait(LIMIT).acquire().await;
    assert!(is_held(&refused), "{refused:?}");
}

#[tokio::test]
async fn locks_on_two_keys_do_not_meet() {
    let rig = Rig::new();
    let first = held(&rig).await;
    let other = Key::new("test", "B").unwrap();
    let second = rig.idem.lock(other.clone()).acquire().await.unwrap();
    assert_eq!((first.key(), second.key()), (&key(), &other));
}

#[tokio::test]
async fn a_lease_that_can_not_be_kept_is_refused() {
    let rig = Rig::new();
    for lease in [Duration::ZERO, LEASE / 2, Duration::from_hours(25)] {
        let refused = lock(&rig).lease(lease).acquire().await;
        assert!(
            matches!(refused, Err(Error::InvalidPolicy { .. })),
            "{refused:?}"
        );
    }
}
