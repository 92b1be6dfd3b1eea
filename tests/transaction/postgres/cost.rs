//! What a call costs beside the transaction that it is part of.

use std::str::FromStr;
use std::sync::atomic::Ordering;

use idem_tests::postgres::PostgresServer;
use idem_tests::round_trips::counting;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, Postgres};

use super::place;
use crate::base::{Base, Place};
use crate::shop::{Then, pay};

/// As many as make one page more or less of no account.
const CALLS: i64 = 400;
const WARM_UP: i64 = 50;

/// A database on a server that serves nobody else, and one connection for all calls.
async fn alone(server: &PostgresServer, port: Option<u16>) -> Place<Postgres> {
    let mut options = PgConnectOptions::from_str(&server.url()).unwrap();
    if let Some(port) = port {
        options = options.port(port);
    }
    let pool = PgPoolOptions::new().max_connections(2);
    place(pool.connect_with(options).await.unwrap()).await
}

async fn bare(connection: &mut PgConnection, number: i64) {
    let mut tx = connection.begin().await.unwrap();
    Postgres::add(&mut tx, number).await.unwrap();
    tx.commit().await.unwrap();
}

async fn guarded(place: &Place<Postgres>, connection: &mut PgConnection, number: i64) {
    let mut tx = connection.begin().await.unwrap();
    pay(place, &mut tx, number, Then::End).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_writes_its_record_once_into_the_log() {
    let server = PostgresServer::start().unwrap();
    let place = alone(&server, None).await;
    let mut connection = place.pool.acquire().await.unwrap();
    let log = async || {
        let bytes = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let bytes = sqlx::query_scalar(bytes).fetch_one(&place.pool);
        let bytes: i64 = bytes.await.unwrap();
        bytes
    };
    for number in 0..WARM_UP {
        guarded(&place, &mut connection, number).await;
    }
    let start = log().await;
    for number in 0..CALLS {
        bare(&mut connection, number).await;
    }
    let middle = log().await;
    for number in WARM_UP..WARM_UP + CALLS {
        guarded(&place, &mut connection, number).await;
    }
    let end = log().await;
    let more = ((end - middle) - (middle - start)) / CALLS;
    // About 560 for a result of at most nine bytes; a record that is written when it is claimed, and
    // again, is above 900.
    assert!(more <= 600, "{more} bytes of log more a call");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_four_times_for_the_server_and_a_duplicate_twice() {
    let server = PostgresServer::start().unwrap();
    let behind = PgConnectOptions::from_str(&server.url())
        .unwrap()
        .get_port();
    let (port, count) = counting(behind).await;
    let place = alone(&server, Some(port)).await;
    let mut connection = place.pool.acquire().await.unwrap();
    bare(&mut connection, 0).await;
    guarded(&place, &mut connection, 0).await;
    let mut before = count.load(Ordering::Relaxed);
    let mut waits = || {
        let now = count.load(Ordering::Relaxed);
        now - std::mem::replace(&mut before, now)
    };
    bare(&mut connection, 1).await;
    assert_eq!(waits(), 3, "begin, effect, commit");
    guarded(&place, &mut connection, 1).await;
    assert_eq!(waits(), 3 + 4, "savepoint, lock and read, record, release");
    guarded(&place, &mut connection, 1).await;
    // The rollback to the savepoint goes with the commit.
    assert_eq!(waits(), 2 + 3, "savepoint, lock and read, rollback");
}
