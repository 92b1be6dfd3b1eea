//! What a store says of itself, and what it says when it fails, names no password.

use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use idem_core::StoreErrorKind;
use idem_core::store::{MySqlStore, PostgresStore, Store};
use idem_tests::attempt::key;
use idem_tests::database::{Database, OnMariaDb, OnPostgres};
use sqlx::{MySqlPool, PgPool};

/// `store` is of a database that is not there, on the server at an address.
async fn is_kept_by<S: Store + Debug>(store: impl Fn(SocketAddr) -> S, server: SocketAddr) {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|port| port.local_addr());
    let unlike = [
        (server, StoreErrorKind::Misconfigured),
        (nobody.unwrap(), StoreErrorKind::Unavailable),
    ];
    for (address, kind) in unlike {
        let store = store(address);
        let error = store.peek(&key("order", "1")).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let told = format!("{store:?} {error} {error:?}");
        assert!(!told.contains("s3cret"), "{told}");
    }
}

// CASES Y04
#[tokio::test]
async fn a_password_is_kept_by_a_store_in_postgresql() {
    let server = OnPostgres::empty().await.address();
    let store = |address| {
        let url = format!("postgres://postgres:s3cret@{address}/nowhere");
        let store = PostgresStore::new(PgPool::connect_lazy(&url).unwrap());
        store.limit(Duration::from_secs(1))
    };
    is_kept_by(store, server).await;
}

// CASES Y04
#[tokio::test]
async fn a_password_is_kept_by_a_store_in_mariadb() {
    let server = OnMariaDb::empty().await.address();
    let store = |address| {
        let url = format!("mysql://root:s3cret@{address}/nowhere?ssl-mode=disabled");
        let store = MySqlStore::new(MySqlPool::connect_lazy(&url).unwrap());
        store.limit(Duration::from_secs(1))
    };
    is_kept_by(store, server).await;
}
