//! What only the memory store does; the laws that hold for every store are in the conformance
//! suite.

use std::time::Duration;

use super::{ManualClock, MemoryStore, SystemClock};
use crate::error::StoreErrorKind;
use crate::record::{
    Claim, ClaimReply, OnAbandoned, Outcome, Owner, Settle, SettleReply, Slot, StoreTime, Terms,
};
use crate::store::memory::Clock;
use crate::store::{Cursor, Scan, Store, StoreKey};

const SECOND: Duration = Duration::from_secs(1);
const NEVER: StoreTime = StoreTime::from_micros(u64::MAX);

fn key(part: &str) -> StoreKey {
    let key = crate::Key::new("memory", part).unwrap();
    StoreKey::new("test", &key).unwrap()
}

fn terms(expire: Duration) -> Terms {
    Terms {
        lease: SECOND,
        expire,
        doubt: expire,
        limit: SECOND,
    }
}

fn claim_for(owner: u8, expire: Duration) -> Claim {
    Claim {
        owner: Owner::from_bytes([owner; 16]),
        terms: terms(expire),
        fingerprint: None,
        policy: OnAbandoned::Hold,
        checkpoint: true,
        token: None,
        recover: false,
        wait: false,
        not_after: NEVER,
    }
}

fn success_of(owner: u8, expire: Duration) -> Settle {
    Settle {
        owner: Owner::from_bytes([owner; 16]),
        terms: terms(expire),
        outcome: Outcome::Success(None),
        not_after: NEVER,
        echo: None,
    }
}

type Manual = MemoryStore<ManualClock>;

async fn take(store: &Manual, part: &str, expire: Duration) {
    let answer = store.claim(&key(part), &claim_for(1, expire)).await;
    let reply = answer.unwrap().reply;
    assert!(matches!(reply, ClaimReply::Claimed(_)), "{part}: {reply:?}");
}

async fn finish(store: &Manual, part: &str, expire: Duration) {
    take(store, part, expire).await;
    let answer = store.settle(&key(part), &success_of(1, expire)).await;
    assert_eq!(answer.unwrap().reply, SettleReply::Settled);
}

async fn is_there(store: &Manual, part: &str) -> bool {
    store.peek(&key(part)).await.unwrap().reply != Slot::Absent
}

async fn is_refused(store: &Manual, part: &str) -> bool {
    match store.claim(&key(part), &claim_for(2, SECOND)).await {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), StoreErrorKind::Refused);
            true
        }
    }
}

fn store() -> (Manual, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::with_clock(clock.clone()), clock)
}

#[tokio::test]
async fn a_full_store_refuses_new_keys_and_serves_the_old_ones() {
    let (store, _) = store();
    let store = store.capacity(2);
    take(&store, "a", SECOND * 60).await;
    finish(&store, "b", SECOND * 60).await;

    assert!(is_refused(&store, "c").await);
    assert!(!is_refused(&store, "b").await);
    let settled = store.settle(&key("a"), &success_of(1, SECOND)).await;
    assert_eq!(settled.unwrap().reply, SettleReply::Settled);
    assert_eq!(store.len(), 2);
    assert_eq!(store.evicted(), 0);
}

#[tokio::test]
async fn a_full_store_makes_room_by_dropping_what_has_expired() {
    let (store, clock) = store();
    let store = store.capacity(2);
    finish(&store, "a", SECOND).await;
    finish(&store, "b", SECOND * 60).await;
    assert!(is_refused(&store, "c").await);

    clock.advance(SECOND);
    take(&store, "c", SECOND).await;
    assert!(is_there(&store, "b").await);
    assert_eq!(store.len(), 2);
    assert_eq!(store.evicted(), 0);
}

#[tokio::test]
async fn eviction_forgets_the_record_that_finished_first_and_counts_it() {
    let (store, clock) = store();
    let store = store.capacity(3).evict(true);
    take(&store, "running", SECOND * 60).await;
    for part in ["first", "second"] {
        finish(&store, part, SECOND * 60).await;
        clock.advance(SECOND);
    }

    take(&store, "new", SECOND * 60).await;
    assert!(!is_there(&store, "first").await);
    assert!(is_there(&store, "second").await);
    assert!(is_there(&store, "running").await);
    assert_eq!((store.len(), store.evicted()), (3, 1));
}

#[tokio::test]
async fn a_store_that_evicts_is_found_by_its_check() {
    let (store, _) = store();
    assert_eq!(store.check().await.unwrap(), []);
    let (store, _) = self::store();
    let found = store.evict(true).check().await.unwrap();
    assert_eq!(found[0].code, "eviction_policy");
    assert!(found[0].detail.contains("`capacity`"));
}

#[tokio::test]
async fn eviction_never_ends_an_attempt() {
    let (store, _) = store();
    let store = store.capacity(1).evict(true);
    take(&store, "running", SECOND * 60).await;
    assert!(is_refused(&store, "new").await);
    assert!(is_there(&store, "running").await);
}

#[test]
fn a_store_filled_from_many_threads_holds_exactly_its_capacity() {
    const CAPACITY: usize = 500;
    const THREADS: usize = 8;
    let (store, _) = store();
    let store = store.capacity(CAPACITY);
    let fill = |thread| {
        let granted = async {
            let mut granted = 0;
            for part in 0..CAPACITY {
                let key = key(&format!("{thread}/{part}"));
                let answer = store.claim(&key, &claim_for(1, SECOND)).await;
                granted += usize::from(answer.is_ok());
            }
            granted
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(granted)
    };
    let granted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || fill(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!((granted, store.len()), (CAPACITY, CAPACITY));
}

#[tokio::test]
async fn records_that_expire_leave_without_anybody_asking_for_them() {
    let (store, clock) = store();
    for round in 0..200 {
        for part in 0..20 {
            finish(&store, &format!("{round}/{part}"), SECOND).await;
        }
        clock.advance(SECOND);
    }
    // The last round, and what the writes have not reached yet.
    assert!(store.len() < 20 * 20, "{} records are held", store.len());
}

#[tokio::test]
async fn subscriptions_that_nobody_listens_to_do_not_pile_up() {
    let (store, _) = store();
    for part in 0..10_000 {
        drop(store.watch(&key(&part.to_string())).await.unwrap());
    }
    let held: usize = store.shards.iter().map(|shard| shard.watchers.len()).sum();
    assert!(held <= 16 * store.shards.len(), "{held} channels are held");
}

#[tokio::test]
async fn a_cursor_of_another_store_is_an_error() {
    let (store, _) = store();
    let scan = Scan {
        prefix: "test:".into(),
        cursor: Some(Cursor("what?".into())),
        page_size: 10,
    };
    let error = store.scan(&scan).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Protocol);
}

/// Panics once, as a clock of the user's own might.
struct Faulty(std::sync::atomic::AtomicBool);

impl Clock for Faulty {
    fn now(&self) -> StoreTime {
        let panics = self.0.swap(false, std::sync::atomic::Ordering::SeqCst);
        assert!(!panics, "this clock panics");
        StoreTime::from_micros(1)
    }
}

// M21
#[tokio::test]
async fn a_panic_inside_one_operation_does_not_stop_the_next() {
    let store = std::sync::Arc::new(MemoryStore::with_clock(Faulty(true.into())));
    let panicking = store.clone();
    let failed = tokio::spawn(async move { panicking.peek(&key("a")).await.is_ok() }).await;
    assert!(failed.unwrap_err().is_panic());

    for part in 0..100 {
        let reply = store
            .claim(&key(&part.to_string()), &claim_for(1, SECOND))
            .await;
        assert!(matches!(reply.unwrap().reply, ClaimReply::Claimed(_)));
    }
    let again = store.claim(&key("a"), &claim_for(1, SECOND)).await;
    assert!(matches!(again.unwrap().reply, ClaimReply::Claimed(_)));
}

#[test]
fn the_system_clock_agrees_with_the_wall_clock_and_goes_on() {
    let clock = SystemClock::new();
    let before = clock.now();
    let wall = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let wall = StoreTime::default().after(wall);
    assert!(wall.since(before) < Duration::from_secs(5));
    assert!(before.since(wall) < Duration::from_secs(5));
    assert!(clock.now() >= before);
}
