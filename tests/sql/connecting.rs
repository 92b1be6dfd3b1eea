//! A server to which a connection takes longer than a call may take: as many clients come back to
//! it at once, each waits for all the others.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use idem_core::conformance::Harness;
use idem_core::store::PostgresStore;
use idem_core::{Error, Idempotency, Key, Policy};
use idem_tests::database::{Database, OnPostgres};
use sqlx::postgres::PgPoolOptions;

const LIMIT: Duration = Duration::from_millis(200);
const SLOW: Duration = Duration::from_millis(300);

/// A port by which each connection to `server` begins late, and is as quick as any from then on.
fn slowly(server: u16) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            // An end is the end of this connection.
            thread::spawn(move || join(client, server));
        }
    });
    port
}

fn join(mut client: TcpStream, server: u16) -> io::Result<()> {
    thread::sleep(SLOW);
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
    let (mut requests, mut replies) = (client.try_clone()?, server.try_clone()?);
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    thread::spawn(move || io::copy(&mut requests, &mut server));
    io::copy(&mut replies, &mut client)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_takes_longer_than_a_call_is_there_for_a_later_one() {
    let database = OnPostgres::empty().await;
    database.fresh_store().await;
    let options = database.options();
    let port = slowly(options.get_port());
    let pool = PgPoolOptions::new().max_connections(2);
    let store = PostgresStore::new(pool.connect_lazy_with(options.port(port)));
    let idem = Idempotency::builder(store.limit(LIMIT))
        .limit(LIMIT)
        .build()
        .unwrap();
    let begin = Instant::now();
    loop {
        let key = Key::new("slow", "A").unwrap();
        let body = async || Ok::<_, Error>(1);
        match idem.run(key, Policy::new(), body).await {
            Ok(_) => break,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(10), "{error:?}"),
        }
    }
}
