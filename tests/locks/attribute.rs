//! Functions under `#[locked]`.

use std::cell::Cell;
use std::time::Duration;

use idem_core::{
    Attempt, Error, Idempotency, Key, Lock, Outcome, Policy, idempotent, locked, observe,
};
use idem_tests::faulty::{Fault, Verb};

use crate::rig::{Bodies, Held, LEASE, Rig, failure, is_failure, key};
use crate::scene::{is_held, is_lost, lock, record, until_free};

const EXIT: u32 = 7;

#[locked(prefix = "test", key = name, lease = "1s", engine = rig.idem)]
async fn stay(rig: &Rig, name: &str, held: &Held) -> Result<u32, Error> {
    held.stay().await;
    Ok(1)
}

#[locked(prefix = "test", key = "name", lease = 1, wait = "20s", engine = rig.idem)]
async fn patient(rig: &Rig, name: &str) -> Result<u32, Error> {
    Ok(2)
}

/// Leaves in each way that a body can.
#[locked(prefix = "test", key = "{name}", engine = rig.idem)]
async fn leave(rig: &Rig, name: &str, how: &str) -> Result<u32, Error> {
    assert!(record(rig).await.is_some(), "the body is not locked");
    match how {
        "returns early" => return Ok(EXIT),
        "tries" => Err(failure())?,
        "panics" => panic!("the body's own"),
        "fails" => return Err(failure()),
        _ => {}
    }
    Ok(EXIT)
}

#[tokio::test]
async fn a_function_is_refused_while_another_with_its_key_runs() {
    let (rig, held) = (Rig::new(), Held::new());
    let first = tokio::spawn({
        let (rig, held) = (rig.clone(), held.clone());
        async move { stay(&rig, "A", &held).await }
    });
    held.entered().await;
    let (refused, outcome) = observe(leave(&rig, "A", "ends")).await;
    assert!(is_held(&refused), "{refused:?}");
    assert_eq!(outcome, Outcome::Refused);
    let waiting = tokio::spawn({
        let rig = rig.clone();
        async move { patient(&rig, "A").await }
    });
    rig.store.until_calls(Verb::Claim, 4).await;
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    assert_eq!(waiting.await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn the_lock_is_free_whichever_way_the_body_ends() {
    let rig = Rig::new();
    for how in ["ends", "returns early"] {
        let (result, outcome) = observe(leave(&rig, "A", how)).await;
        assert_eq!(result.unwrap(), EXIT);
        assert_eq!(outcome, Outcome::Executed);
        assert!(record(&rig).await.is_none(), "{how}");
    }
    for how in ["tries", "fails"] {
        assert!(is_failure(&leave(&rig, "A", how).await), "{how}");
        assert!(record(&rig).await.is_none(), "{how}");
    }
}

// L04
#[tokio::test]
async fn a_body_that_panics_is_released_before_its_caller_goes_on() {
    let rig = Rig::new();
    let call = tokio::spawn({
        let rig = rig.clone();
        async move { leave(&rig, "A", "panics").await }
    });
    assert!(call.await.unwrap_err().is_panic());
    assert!(record(&rig).await.is_none());
}

// X03
#[tokio::test]
async fn a_call_that_is_dropped_is_released_in_the_background() {
    let (rig, held) = (Rig::new(), Held::new());
    let call = tokio::spawn({
        let (rig, held) = (rig.clone(), held.clone());
        async move { stay(&rig, "A", &held).await }
    });
    held.entered().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    until_free(&rig).await;
}

#[locked(prefix = "outer", key = name, engine = rig.idem)]
async fn nested(rig: &Rig, name: &str) -> Result<(Lock, Lock), Error> {
    let outer = Lock::current().unwrap();
    let inner = named(rig, name).await?;
    assert_eq!(Lock::current().unwrap().key(), outer.key());
    Ok((outer, inner))
}

#[locked(prefix = "inner", key = name, engine = rig.idem)]
async fn named(rig: &Rig, name: &str) -> Result<Lock, Error> {
    Ok(Lock::current().unwrap())
}

#[tokio::test]
async fn a_body_knows_its_own_lock() {
    let rig = Rig::new();
    assert!(Lock::current().is_none());
    let (outer, inner) = nested(&rig, "A").await.unwrap();
    assert_eq!(outer.key(), &Key::new("outer", "A").unwrap());
    assert_eq!(inner.key(), &Key::new("inner", "A").unwrap());
    let again = named(&rig, "A").await.unwrap();
    assert!(again.fence() > inner.fence());
}

#[locked(prefix = "test", key = name, lease = LEASE, engine = rig.idem)]
async fn watch(rig: &Rig, name: &str) -> Result<u32, Error> {
    let lock = Lock::current().unwrap();
    lock.lost().await;
    tokio::task::yield_now().await;
    assert!(lock.is_lost());
    Ok(1)
}

/// Only the body knows where it can stop.
#[tokio::test]
async fn a_body_whose_lock_was_lost_is_told_goes_on_and_gives_its_result() {
    let rig = Rig::new();
    rig.store.always(Verb::Renew, Fault::hang());
    assert_eq!(watch(&rig, "A").await.unwrap(), 1);
    assert_eq!(rig.counts().lease_lost, 1);
    assert!(record(&rig).await.is_none());
}

#[tokio::test]
async fn a_drain_drops_the_body_and_releases_its_lock() {
    let (rig, held) = (Rig::new(), Held::new());
    let call = tokio::spawn({
        let (rig, held) = (rig.clone(), held.clone());
        async move { stay(&rig, "A", &held).await }
    });
    held.entered().await;
    assert_eq!(rig.idem.drain(Duration::ZERO).await, 1);
    let stopped = call.await.unwrap();
    assert!(is_lost(&stopped), "{stopped:?}");
    assert!(record(&rig).await.is_none());
}

#[locked(prefix = "test", key = name, message = "somebody is at it")]
async fn by_the_scope(name: Option<&str>) -> Result<u32, Error> {
    Ok(1)
}

#[tokio::test]
async fn a_call_without_a_key_or_without_an_engine_does_not_run() {
    let rig = Rig::with(|builder| builder.defaults(Policy::new().run_on_missing_key()));
    let refused = by_the_scope(Some("A")).await;
    assert!(matches!(refused, Err(Error::NotInstalled)), "{refused:?}");
    let refused = rig.idem.scope(by_the_scope(None)).await;
    assert!(
        matches!(&refused, Err(Error::MissingKey { part }) if part == "name"),
        "{refused:?}"
    );
    assert_eq!(rig.idem.scope(by_the_scope(Some("A"))).await.unwrap(), 1);
    let _lock = lock(&rig).acquire().await.unwrap();
    let refused = rig.idem.scope(by_the_scope(Some("A"))).await.unwrap_err();
    assert_eq!(refused.message(), "somebody is at it");
}

#[locked(prefix = "test", key = name, engine = rig.idem)]
async fn another_function_with_the_same_prefix(rig: &Rig, name: &str) -> Result<u32, Error> {
    Ok(3)
}

#[tokio::test]
async fn functions_may_share_a_lock() {
    let rig = Rig::new();
    assert_eq!(patient(&rig, "A").await.unwrap(), 2);
    let other = another_function_with_the_same_prefix(&rig, "A").await;
    assert_eq!(other.unwrap(), 3);
    let _lock = rig.idem.lock(key()).acquire().await.unwrap();
    let refused = another_function_with_the_same_prefix(&rig, "A").await;
    assert!(is_held(&refused), "{refused:?}");
}

struct Counter {
    idem: Idempotency,
    count: Cell<u32>,
}

impl Counter {
    /// Gives what no store could keep.
    #[locked(prefix = "counter", key = (self.count.get(), other.0), engine = self.idem)]
    async fn next<'a>(&'a self, other: &(u8, u8)) -> Result<&'a Cell<u32>, anyhow::Error> {
        self.count.set(self.count.get() + u32::from(other.1));
        Ok(&self.count)
    }
}

#[async_trait::async_trait]
trait Shelf {
    async fn take(&self, item: u32) -> Result<u32, Error>;
    async fn fill(&self, item: u32) -> Result<u32, Error>;
    async fn clear(&self, item: u32) -> Result<u32, Error>;
}

#[async_trait::async_trait]
impl Shelf for Bodies {
    #[locked(prefix = "shelf", key = "{self.count()}/{item}")]
    async fn take(&self, item: u32) -> Result<u32, Error> {
        assert_eq!(Lock::current().unwrap().key().as_str(), "shelf::0/7");
        Ok(self.add() + item)
    }

    #[locked(prefix = "shelf:fill", key = item)]
    #[idempotent(prefix = "shelf:fill", key = item)]
    async fn fill(&self, item: u32) -> Result<u32, Error> {
        assert!(Attempt::current().is_some() && Lock::current().is_some());
        Ok(self.add() + item)
    }

    #[idempotent(prefix = "shelf:clear", key = item)]
    #[locked(prefix = "shelf:clear", key = item)]
    async fn clear(&self, item: u32) -> Result<u32, Error> {
        assert!(Attempt::current().is_some() && Lock::current().is_some());
        Ok(self.add() + item)
    }
}

#[tokio::test]
async fn methods_can_be_locked_and_may_borrow_their_result() {
    let counter = Counter {
        idem: Idempotency::memory(),
        count: Cell::new(1),
    };
    assert_eq!(counter.next(&(1, 2)).await.unwrap().get(), 3);
    let bodies = Bodies::default();
    let taken = counter.idem.scope(bodies.take(7)).await;
    assert_eq!(taken.unwrap(), 8);
}

#[tokio::test]
async fn methods_of_a_boxed_trait_can_be_both_in_either_order() {
    let (idem, shelf) = (Idempotency::memory(), Bodies::default());
    for expected in [Outcome::Executed, Outcome::Replayed] {
        let (filled, outcome) = observe(idem.scope(shelf.fill(7))).await;
        assert_eq!((filled.unwrap(), outcome), (8, expected));
        let (cleared, outcome) = observe(idem.scope(shelf.clear(7))).await;
        assert_eq!((cleared.unwrap(), outcome), (9, expected));
    }
    assert_eq!(shelf.count(), 2);
}

#[test]
#[allow(
    clippy::large_types_passed_by_value,
    reason = "the size of the future is the subject"
)]
fn a_future_stays_send_and_grows_by_less_than_a_kibibyte() {
    #[locked(prefix = "size", key = payload[0])]
    async fn with(payload: [u8; 4096]) -> Result<u8, Error> {
        tokio::task::yield_now().await;
        Ok(payload[1])
    }
    fn size_of_send<F: Future + Send>(future: &F) -> usize {
        size_of_val(future)
    }
    let size = size_of_send(&with([0; 4096]));
    assert!(size < 2 * 4096 + 1024, "{size}");
}
