//! A holder that stands still for longer than its lease: what it writes to refuses it.

use std::time::Duration;

use idem_core::{Idempotency, Key};
use idem_tests::process::Worker;
use idem_tests::redis::{RedisOptions, RedisServer};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

use crate::rig::LEASE;

const SOON: Duration = Duration::from_secs(20);

async fn account(file: &str) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let table =
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER);
        INSERT INTO account (id, balance) VALUES (1, 100);";
    sqlx::raw_sql(table).execute(&pool).await.unwrap();
    pool
}

async fn balance(pool: &SqlitePool) -> i64 {
    let read = sqlx::query_scalar("SELECT balance FROM account WHERE id = 1");
    read.fetch_one(pool).await.unwrap()
}

// N21, L01
#[tokio::test]
async fn a_holder_that_was_stopped_for_longer_than_its_lease_writes_nothing_afterwards() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("accounts.db").display().to_string();
    let accounts = account(&file).await;
    let program = env!("CARGO_BIN_EXE_locker");
    let millis = LEASE.as_millis().to_string();
    let paused = Worker::start(program, [&server.url(), &file, &millis]).unwrap();
    let hear = || paused.hear(SOON).unwrap();
    let ask = |line: &str| {
        paused.say(line).unwrap();
        hear()
    };
    assert_eq!(hear(), "ready");
    let fence: i64 = ask("acquire").parse().unwrap();
    assert_eq!(ask("write 90"), "1 row");
    assert_eq!(ask("lost"), "false");
    paused.freeze().unwrap();

    let idem = Idempotency::redis(&server.url()).await.unwrap();
    let request = idem.lock(Key::new("account", 1).unwrap()).lease(LEASE);
    let next = request.wait(SOON).acquire().await.unwrap();
    assert!(next.is_takeover());
    assert!(next.fence().as_i64() > fence);
    let update = "UPDATE account SET balance = balance - 20, fence = ?1 WHERE id = 1 AND (fence IS NULL OR fence <= ?1)";
    let update = sqlx::query(update).bind(next.fence().as_i64());
    assert_eq!(update.execute(&accounts).await.unwrap().rows_affected(), 1);
    next.release().await.unwrap();

    paused.thaw().unwrap();
    assert_eq!(ask("write 0"), "0 rows");
    assert_eq!(ask("lost"), "true");
    assert_eq!(ask("release"), "lease_lost");
    assert_eq!(balance(&accounts).await, 70);
    assert!(ask("acquire").parse::<i64>().unwrap() > fence);
    assert_eq!(ask("write 60"), "1 row");
    assert_eq!(ask("release"), "released");
    assert_eq!(balance(&accounts).await, 60);
}
