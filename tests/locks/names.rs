//! Locks and requests with one key.

use idem_core::engine::Changes;
use idem_core::record::Status;
use idem_core::{Error, Idempotency, Key, MemoryStore, Policy};

use crate::rig::{Bodies, Rig, key};
use crate::scene::{held, is_lost, lock, record};

async fn keys(rig: &Rig, prefix: &str) -> Vec<String> {
    let records = rig.idem.records(prefix).await.unwrap();
    records.into_iter().map(|record| record.key).collect()
}

// N31
#[tokio::test]
async fn a_lock_and_a_request_with_one_key_do_not_meet() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let first = held(&rig).await;
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(rig.status().await, Some(Status::Success));
    first.release().await.unwrap();
    let again = held(&rig).await;
    assert!(!again.is_takeover());
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

// N31
#[tokio::test]
async fn a_list_of_requests_holds_no_locks() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let _lock = held(&rig).await;
    rig.count(Policy::new(), &bodies).await.unwrap();
    assert_eq!(keys(&rig, "test").await, ["test::A"]);
    assert_eq!(keys(&rig, "~lock:test").await, ["~lock:test::A"]);
    assert_eq!(keys(&rig, "").await.len(), 2);
}

#[test]
fn the_key_of_a_lock_can_be_read_back_and_no_prefix_gives_it() {
    let of_lock = key().of_lock();
    assert_eq!(Key::parse(of_lock.as_str()).unwrap(), of_lock);
    assert_eq!(of_lock.prefix(), "~lock:test");
    assert_eq!(of_lock.of_lock(), of_lock);
    assert_eq!(
        Key::parse(of_lock.hashed().as_str()).unwrap(),
        of_lock.hashed()
    );
    let long = Key::new("test", "x".repeat(300)).unwrap().of_lock();
    assert_eq!(Key::parse(long.as_str()).unwrap(), long);
    for prefix in ["~lock:test", "~lock", "~"] {
        assert!(Key::new(prefix, "A").is_err());
    }
    assert!(Key::parse("~lock:~lock:test::A").is_err());
}

#[tokio::test]
async fn no_request_runs_under_the_key_of_a_lock() {
    let rig = Rig::new();
    let refused = rig.idem.run(key().of_lock(), Policy::new(), async || Ok(1));
    let refused: Result<u32, Error> = refused.await;
    assert!(
        matches!(refused, Err(Error::InvalidKey { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_operator_ends_a_lock_by_the_key_that_is_listed() {
    let rig = Rig::new();
    let first = held(&rig).await;
    let [listed] = keys(&rig, "~lock:").await.try_into().unwrap();
    let listed = Key::parse(&listed).unwrap();
    let ended = rig.idem.release(&listed).force().await.unwrap();
    assert_eq!(ended, Changes::Done);
    let next = lock(&rig).acquire().await.unwrap();
    assert!(next.fence() > first.fence());
    let told = first.release().await;
    assert!(is_lost(&told), "{told:?}");
    assert!(record(&rig).await.is_some());
}

#[tokio::test]
async fn the_keys_of_locks_are_hashed_where_keys_are() {
    let idem = Idempotency::builder(MemoryStore::new())
        .hash_keys()
        .build()
        .unwrap();
    let _lock = idem.lock(key()).acquire().await.unwrap();
    let [listed] = idem.records("").await.unwrap().try_into().unwrap();
    assert!(listed.key.starts_with("~lock:test::~"), "{}", listed.key);
    assert!(idem.peek(&key().of_lock()).await.unwrap().is_some());
    let again = idem.lock(key()).acquire().await;
    assert!(matches!(again, Err(Error::InProgress { .. })), "{again:?}");
}
