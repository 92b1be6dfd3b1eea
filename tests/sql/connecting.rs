//! How connections to a server are opened: one when it is needed, and to its end. Where one takes
//! longer than a call may take, as when many clients come back to a server at once, a later call
//! has what an earlier one has begun.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use idem_core::StoreErrorKind;
use idem_core::conformance::Harness;
use idem_core::store::{PostgresStore, Store};
use idem_tests::attempt::key;
use idem_tests::database::{Database, OnPostgres};
use idem_tests::proxy::{Mode, Proxy};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::Builder;

const LIMIT: Duration = Duration::from_millis(200);
const SLOW: Duration = Duration::from_millis(300);
const MOST: u32 = 2;

/// A port by which each connection to `server` begins late, and is as quick as any from then on;
/// and how many have come.
fn port_of(server: u16, late: Duration) -> (u16, Arc<AtomicU32>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let come = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&come);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            count.fetch_add(1, Ordering::SeqCst);
            // An end is the end of this connection.
            thread::spawn(move || join(client, server, late));
        }
    });
    (port, come)
}

fn join(mut client: TcpStream, server: u16, late: Duration) -> io::Result<()> {
    thread::sleep(late);
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
    let (mut requests, mut replies) = (client.try_clone()?, server.try_clone()?);
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    thread::spawn(move || io::copy(&mut requests, &mut server));
    io::copy(&mut replies, &mut client)?;
    Ok(())
}

/// A store whose calls have so much time, on a pool without connections; and how many were opened.
async fn cold(limit: Duration, late: Duration) -> (PostgresStore, Arc<AtomicU32>) {
    let database = OnPostgres::empty().await;
    database.fresh_store().await;
    let options = database.options();
    let (port, come) = port_of(options.get_port(), late);
    let pool = PgPoolOptions::new().max_connections(MOST);
    let store = PostgresStore::new(pool.connect_lazy_with(options.port(port)));
    (store.limit(limit), come)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_call_opens_one_connection() {
    let (store, opened) = cold(Duration::from_secs(10), Duration::ZERO).await;
    store.peek(&key("cold", "A")).await.unwrap();
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_takes_longer_than_a_call_is_there_for_a_later_one() {
    let (store, opened) = cold(LIMIT, SLOW).await;
    let begin = Instant::now();
    while let Err(error) = store.peek(&key("cold", "A")).await {
        assert!(begin.elapsed() < Duration::from_secs(10), "{error:?}");
    }
    assert!(opened.load(Ordering::SeqCst) <= MOST);
}

/// Or a user whose password is another one by now: who has the pool tells it, and nothing else.
#[test]
fn every_runtime_finds_a_server_that_has_moved() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let (home, other) = (runtime(), runtime());
    let database = home.block_on(async {
        let database = OnPostgres::empty().await;
        database.fresh_store().await;
        database
    });
    let wire = Proxy::start(database.address()).unwrap();
    let moved = database.options();
    let (pool, store) = home.block_on(async {
        let pool = PgPool::connect_lazy_with(moved.clone().port(wire.address().port()));
        (pool.clone(), PostgresStore::new(pool))
    });
    let asks = || {
        for runtime in [&home, &other] {
            runtime.block_on(store.now()).unwrap();
        }
    };
    asks();
    wire.set(Mode::Cut);
    pool.set_connect_options(moved);
    asks();
}

/// A pooler that has no connection left lets nobody in, by a code that says nothing else.
fn full() -> io::Result<u16> {
    const REFUSAL: &[u8] = b"SFATAL\0VFATAL\0CXX000\0Mmax clients reached\0\0";
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || -> io::Result<()> {
        loop {
            let (mut client, _) = listener.accept()?;
            let mut length = [0; 4];
            client.read_exact(&mut length)?;
            let mut startup = vec![0; u32::from_be_bytes(length) as usize - length.len()];
            client.read_exact(&mut startup)?;
            let length = u32::try_from(REFUSAL.len() + 4).unwrap().to_be_bytes();
            client.write_all(&[b"E", &length[..], REFUSAL].concat())?;
        }
    });
    Ok(port)
}

/// Nothing was asked, so it is no answer that one of many calls may be alone to meet.
#[tokio::test]
async fn who_is_not_let_in_by_an_unknown_code_has_no_connection() {
    let url = format!(
        "postgres://shop@127.0.0.1:{}/shop?sslmode=disable",
        full().unwrap()
    );
    let store = PostgresStore::new(PgPool::connect_lazy(&url).unwrap());
    let refused = store.peek(&key("full", "A")).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable, "{refused}");
    assert!(refused.to_string().contains("max clients"), "{refused}");
}
