//! A server that is away for a while, and clients in a hurry. What they begin on their few
//! connections, and do not wait for, must not cost the server more than the calls themselves.

use std::time::{Duration, Instant};

use idem_core::store::{Store, StoreKey};
use idem_core::{StoreError, StoreErrorKind};
use idem_tests::attempt::{TERMS, claim, key};
use idem_tests::database::{Aside, Database, OnMariaDb, OnPostgres};
use idem_tests::proxy::{Mode, Proxy};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;

const CLIENTS: u64 = 32;
const LIMIT: Duration = Duration::from_millis(200);
const AWAY: Duration = Duration::from_secs(2);
/// For how long they go on in a hurry.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// Less than a call takes while all others call too.
const HURRY: Duration = Duration::from_millis(10);
/// Long enough for every client, on a busy machine too.
const LONG: Duration = Duration::from_secs(20);
/// A few for each of the four that a store has at a time.
const FEW: u64 = 24;

async fn called<S: Store>(store: &S, key: &StoreKey, number: u64) -> Result<(), StoreError> {
    let now = store.now().await?;
    store.claim(key, &claim(number, now, TERMS)).await.map(drop)
}

/// Every client calls, and leaves in a hurry, for so long; and then until it has an answer.
async fn all_are_answered<S: Store + Clone + 'static>(store: &S, hurried: Duration) {
    let begin = Instant::now();
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let store = store.clone();
        clients.spawn(async move {
            let key = key("outage", &number.to_string());
            while begin.elapsed() < hurried {
                drop(timeout(HURRY, called(&store, &key, number)).await);
            }
            while let Err(error) = called(&store, &key, number).await {
                assert!(begin.elapsed() < hurried + LONG, "{error}");
            }
        });
    }
    clients.join_all().await;
}

async fn a_silence_is_forgotten_at_little_cost<D: Database>(database: D)
where
    D::Store: 'static,
{
    let server = database.address();
    let wire = tokio::task::block_in_place(|| Proxy::start(server)).unwrap();
    let database = database.behind(wire.address().port());
    let store = D::limited(&database.fresh_store().await, LIMIT);
    all_are_answered(&store, Duration::ZERO).await;

    let before = wire.connections();
    wire.set(Mode::BlackHole);
    let silence = async {
        tokio::time::sleep(AWAY).await;
        wire.set(Mode::Pass);
    };
    tokio::join!(silence, all_are_answered(&store, AWAY + AFTERWARDS));
    let opened = wire.connections() - before;
    assert!(opened <= FEW, "{opened} connections were opened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silence_of_postgresql_is_forgotten_at_little_cost() {
    a_silence_is_forgotten_at_little_cost(OnPostgres::empty().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silence_of_mariadb_is_forgotten_at_little_cost() {
    a_silence_is_forgotten_at_little_cost(OnMariaDb::empty().await).await;
}

/// The machine of some calls loses its power while they have their keys: no word comes from it, and
/// none that it has gone.
async fn a_client_that_falls_silent_keeps_no_key<D: Database>(database: D)
where
    D::Store: 'static,
{
    let server = database.address();
    let wire = tokio::task::block_in_place(|| Proxy::start(server)).unwrap();
    let database = database.behind(wire.address().port());
    let mut aside = database.aside().await;
    let store = D::limited(&database.fresh_store().await, LIMIT);
    let mut is_cut = false;
    while !is_cut {
        let mut clients = JoinSet::new();
        for number in 0..4 {
            let store = store.clone();
            clients.spawn(async move {
                for time in 0_u64.. {
                    let key = key("silent", &format!("{number}-{time}"));
                    if called(&store, &key, number).await.is_err() {
                        return;
                    }
                }
            });
        }
        tokio::time::sleep(LIMIT).await;
        wire.set(Mode::Dark);
        clients.join_all().await;
        tokio::time::sleep(D::BETWEEN_LOOKS).await;
        is_cut = aside.count(D::OPEN).await > 0;
        if !is_cut {
            wire.set(Mode::Pass);
        }
    }
    let silent = Instant::now();
    while aside.count(D::OPEN).await > 0 {
        assert!(silent.elapsed() < LONG, "the server keeps their keys");
        tokio::time::sleep(D::BETWEEN_LOOKS).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_postgresql_that_falls_silent_keeps_no_key() {
    a_client_that_falls_silent_keeps_no_key(OnPostgres::empty().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_mariadb_that_falls_silent_keeps_no_key() {
    a_client_that_falls_silent_keeps_no_key(OnMariaDb::empty().await).await;
}

/// A call that was begun in a runtime can be dropped outside, in whatever it is.
fn a_call_that_is_dropped_outside_is_put_in_order<D: Database>() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let store = runtime.block_on(async { D::empty().await.fresh_store().await });
    let key = key("outside", "A");
    for micros in 0..200 {
        let mut call = Box::pin(called(&store, &key, 1));
        let patience = Duration::from_micros(micros * 20);
        // Some are answered; the point is what the others leave.
        drop(runtime.block_on(async { timeout(patience, &mut call).await }));
        drop(call);
    }
    runtime.block_on(called(&store, &key, 1)).unwrap();

    let mut call = Box::pin(called(&store, &key, 1));
    drop(runtime.block_on(async { timeout(Duration::ZERO, &mut call).await }));
    drop(runtime);
    drop(call);
}

#[test]
fn a_call_to_postgresql_that_is_dropped_outside_is_put_in_order() {
    a_call_that_is_dropped_outside_is_put_in_order::<OnPostgres>();
}

#[test]
fn a_call_to_mariadb_that_is_dropped_outside_is_put_in_order() {
    a_call_that_is_dropped_outside_is_put_in_order::<OnMariaDb>();
}

/// The address without the password, and what to look at; also where the call itself has all that the
/// pool may open.
#[tokio::test]
async fn a_database_that_is_not_there_is_named_by_its_address() {
    let port = idem_tests::port::Port::take().unwrap();
    let url = format!("postgres://shop:secret@127.0.0.1:{}/shop", port.number());
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    let store = idem_core::store::PostgresStore::new(pool.connect_lazy(&url).unwrap());
    let store = store.limit(LIMIT);
    let now = idem_core::record::StoreTime::from_micros(1);
    let unclaimed = store
        .claim(&key("outage", "A"), &claim(1, now, TERMS))
        .await;
    let unclaimed = unclaimed.unwrap_err();
    assert_eq!(unclaimed.kind(), StoreErrorKind::Unavailable);
    assert!(unclaimed.is_before_sending());
    for told in [
        unclaimed.to_string(),
        store.now().await.unwrap_err().to_string(),
    ] {
        let address = format!("127.0.0.1:{}", port.number());
        assert!(told.contains(&address), "{told}");
        assert!(!told.contains("secret"), "{told}");
    }
}
