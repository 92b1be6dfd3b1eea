//! What is told of a row that somebody keeps locked.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use idem_core::record::{Claim, ClaimReply, Terms};
use idem_core::store::{Store, StoreKey};
use idem_core::{
    Error, Fingerprint, Idempotency, Key, Outcome as Observed, Policy, StoreError, StoreErrorKind,
    observe,
};
use tokio::task::JoinSet;

use super::rows::{passed, settled, success};
use super::{Aside, Database};
use crate::attempt::{TERMS, claim, grant, key};

/// Locks one row, as a transaction of somebody else.
pub(super) async fn hold<D: Database>(database: &D, kind: &str) -> D::Aside {
    let mut other = database.aside().await;
    other.run(D::BEGIN).await;
    let row = format!("business_type = 'shop:{kind}' AND business_key = 'held'");
    let lock = format!("SELECT 1 FROM idempotent_record WHERE {row} FOR UPDATE");
    other.run(&lock).await;
    other
}

/// A claim is answered by what is committed; nothing is granted, and nothing else is done.
pub async fn a_locked_row_is_told_as_it_is_committed<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    let limit = Duration::from_secs(3);
    let store = D::limited(&store, limit);
    let key = key("locked", "held");
    let now = store.now().await.unwrap();
    let mut theirs = claim(1, now, TERMS);
    theirs.fingerprint = Some(Fingerprint::of("one").unwrap());
    grant(store.claim(&key, &theirs).await.unwrap().reply);
    let mut other = hold(database, "locked").await;
    let begin = Instant::now();
    let mut ours = claim(2, now, TERMS);
    let told = store.claim(&key, &ours).await.unwrap().reply;
    assert_eq!(told, ClaimReply::Mismatch);
    ours.fingerprint = theirs.fingerprint;
    match store.claim(&key, &ours).await.unwrap().reply {
        ClaimReply::InProgress { lease_left, .. } => {
            assert!(lease_left > TERMS.lease / 2 && lease_left <= TERMS.lease);
        }
        told => panic!("{told:?}"),
    }
    // Whether its first send was granted is for nobody to say who has not the lock.
    let own = store.claim(&key, &theirs).await.unwrap_err();
    is_in_somebodys_way(&own);
    is_in_somebodys_way(
        &store
            .settle(&key, &success(&store, 1).await)
            .await
            .unwrap_err(),
    );
    assert!(begin.elapsed() < 4 * limit);
    let mut aside = database.aside().await;
    let given_up = Instant::now();
    while aside.count(D::WAITING).await > 0 {
        assert!(given_up.elapsed() < limit, "the server goes on waiting");
        tokio::time::sleep(D::BETWEEN_LOOKS).await;
    }
    other.run("ROLLBACK").await;
    settled(&store, &key, 1).await;
    let mut other = hold(database, "locked").await;
    let told = store.claim(&key, &ours).await.unwrap().reply;
    assert!(matches!(told, ClaimReply::Completed { .. }), "{told:?}");
    other.run("ROLLBACK").await;
}

fn is_in_somebodys_way(error: &StoreError) {
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
    assert!(error.is_before_sending(), "{error}");
}

/// Also one that is there only for whoever has just written it.
pub async fn a_lock_that_hides_a_free_key_is_somebodys_attempt<D: Database>(database: &D) {
    let (store, key, second) = abandoned(database, false).await;
    let mut other = hold(database, "locked").await;
    is_somebodys(store.claim(&key, &second).await.unwrap().reply);
    other.run("ROLLBACK").await;
    other
        .run("CREATE TABLE copy_of_held AS SELECT * FROM idempotent_record")
        .await;
    other.run("DELETE FROM idempotent_record").await;
    other.run(D::BEGIN).await;
    other
        .run("INSERT INTO idempotent_record SELECT * FROM copy_of_held")
        .await;
    is_somebodys(store.claim(&key, &second).await.unwrap().reply);
    other.run("ROLLBACK").await;
    grant(store.claim(&key, &second).await.unwrap().reply);
}

/// One whose outcome is unknown, too: whoever has its row may be about to end it.
pub async fn an_abandoned_attempt_whose_row_is_locked_is_somebodys<D: Database>(database: &D) {
    let (store, key, second) = abandoned(database, true).await;
    let mut other = hold(database, "locked").await;
    is_somebodys(store.claim(&key, &second).await.unwrap().reply);
    other.run("ROLLBACK").await;
    let told = store.claim(&key, &second).await.unwrap().reply;
    assert_eq!(told, ClaimReply::OutcomeUnknown);
}

/// An attempt whose lease is over, past its checkpoint or not, and a claim of somebody else.
async fn abandoned<D: Database>(database: &D, checkpoint: bool) -> (D::Store, StoreKey, Claim) {
    let store = database.fresh_store().await;
    let store = D::limited(&store, Duration::from_secs(3));
    let key = key("locked", "held");
    let lapses = Terms {
        lease: Duration::from_millis(1),
        ..TERMS
    };
    let now = store.now().await.unwrap();
    let mut first = claim(1, now, lapses);
    first.checkpoint = checkpoint;
    grant(store.claim(&key, &first).await.unwrap().reply);
    passed(&store, now.as_micros() + 20_000).await;
    (store, key, claim(2, now, TERMS))
}

fn is_somebodys(told: ClaimReply) {
    match told {
        ClaimReply::InProgress { lease_left, .. } => assert_eq!(lease_left, Duration::from_secs(1)),
        told => panic!("{told:?}"),
    }
}

/// Through an engine, with the limits that nobody has changed: a database that says only that
/// somebody has the record has said enough.
pub async fn a_locked_row_is_no_leave_to_run<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    is_no_leave_to_run(database, D::limited(&store, Duration::from_secs(2))).await;
}

/// The same, of a store whose limit nobody has changed.
pub async fn is_no_leave_to_run<D: Database>(database: &D, store: D::Store) {
    let idem = Idempotency::builder(store)
        .namespace("shop")
        .build()
        .unwrap();
    let paid = || Key::new("locked", "held").unwrap();
    let policy = Policy::new().run_on_store_error();
    let bodies = AtomicU32::new(0);
    let call = || {
        idem.run(paid(), policy, async || {
            Ok::<_, Error>(bodies.fetch_add(1, Ordering::SeqCst))
        })
    };
    assert_eq!(call().await.unwrap(), 0);
    let mut other = hold(database, "locked").await;
    match call().await {
        // What is committed.
        Ok(0) => {}
        Err(Error::Store { source, .. }) => {
            assert_eq!(source.kind(), StoreErrorKind::Conflict, "{source}");
        }
        other => panic!("{other:?}"),
    }
    other.run("ROLLBACK").await;
    assert_eq!(call().await.unwrap(), 0);
    assert_eq!(bodies.load(Ordering::SeqCst), 1);
}

/// Of many at once, most do not even have a connection, since those who wait for the record have all.
pub async fn a_crowd_at_a_locked_row_has_no_leave_to_run<D: Database>(database: &D) {
    const CALLS: u32 = 24;
    let store = database.fresh_store().await;
    let store = D::limited(&store, Duration::from_secs(2));
    let engine = || {
        Idempotency::builder(store.clone())
            .namespace("shop")
            .build()
            .unwrap()
    };
    let call = |idem: Idempotency| async move {
        let paid = Key::new("locked", "held").unwrap();
        let body = async || Ok::<_, Error>(());
        observe(idem.run(paid, Policy::new().run_on_store_error(), body)).await
    };
    assert_eq!(call(engine()).await.1, Observed::Executed);
    let mut other = hold(database, "locked").await;
    // One that knows no time of the store, and asks first.
    let idem = engine();
    let mut crowd = JoinSet::new();
    for _ in 0..CALLS {
        crowd.spawn(call(idem.clone()));
    }
    let told = crowd.join_all().await;
    for (result, outcome) in &told {
        let has_no_leave = matches!(outcome, Observed::Refused | Observed::Replayed);
        assert!(has_no_leave, "{outcome:?}: {result:?}");
    }
    let is_refused = |(_, outcome): &(Result<(), Error>, Observed)| *outcome == Observed::Refused;
    assert!(told.iter().any(is_refused), "all were told what is there");
    other.run("ROLLBACK").await;
    assert_eq!(call(idem).await.1, Observed::Replayed);
}
