//! A message whose own body spoils the transaction in which its record would be kept.

use std::mem;
use std::str::FromStr;

use idem_core::consumer::{Consumer, MessageId, Reason};
use idem_core::store::PostgresStore;
use idem_core::{Idempotency, idempotent};
use idem_tests::body::until;
use idem_tests::postgres::PostgresServer;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Acquire, PgPool, Postgres, Transaction};

use crate::rig::{Failure, RULES, is_retried_and_dead, meaning};

/// Keeps the failure of a statement to itself, after which PostgreSQL takes no other.
#[idempotent(prefix = "test:spoilt", key = "id", tx = tx)]
async fn spoil(tx: &mut Transaction<'_, Postgres>, id: &str) -> Result<(), Failure> {
    let _ = sqlx::query("SELECT 1 / 0").execute(&mut **tx).await;
    Ok(())
}

/// Leaves a transaction of its own open in its savepoint, of which nothing can be kept then.
#[idempotent(prefix = "test:left", key = "id", tx = tx)]
async fn leave(tx: &mut Transaction<'_, Postgres>, id: &str) -> Result<(), Failure> {
    mem::forget(tx.begin().await.map_err(|_| Failure::Passing)?);
    Ok(())
}

/// Is idle until the server has ended its session.
#[idempotent(prefix = "test:idle", key = "id", tx = tx)]
async fn idle(tx: &mut Transaction<'_, Postgres>, id: &str, aside: &PgPool) -> Result<(), Failure> {
    let session = "SELECT pg_backend_pid()";
    let session: i32 = sqlx::query_scalar(session)
        .fetch_one(&mut **tx)
        .await
        .unwrap();
    until("the session is ended", async || {
        let there = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";
        let there = sqlx::query_scalar(there).bind(session);
        let there: i64 = there.fetch_one(aside).await.unwrap();
        there == 0
    })
    .await;
    Ok(())
}

/// A message is retried and at last dead, whose handler does this in a transaction of its own.
async fn is_dead_of(
    server: &PostgresServer,
    options: &[(&str, &str)],
    handle: impl AsyncFn(&mut Transaction<'_, Postgres>, &str) -> Result<(), Failure>,
) {
    let url = PgConnectOptions::from_str(&server.url()).unwrap();
    // So that who comes next finds the last one rolled back, and not in progress.
    let one = PgPoolOptions::new().max_connections(1);
    let pool = one.connect_with(url.options(options.iter().copied()));
    let pool = pool.await.unwrap();
    let store = PostgresStore::new(pool.clone());
    store.migrate().await.unwrap();
    let idem = Idempotency::builder(store).build().unwrap();
    let consumer = Consumer::new(meaning).rules(RULES.retries(2));
    let deliver = async |retries| {
        let call = async |id: MessageId| {
            let handled = async {
                let mut tx = pool.begin().await.map_err(|_| Failure::Passing)?;
                handle(&mut tx, id.as_str()).await?;
                tx.commit().await.map_err(|_| Failure::Passing)
            };
            idem.scope(handled).await
        };
        consumer.handle(Some("m-1"), retries, call).await
    };
    is_retried_and_dead(2, Reason::Store, deliver).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_spoils_its_own_transaction_is_dead_after_some_retries() {
    let server = PostgresServer::start().unwrap();
    let handle = async |tx: &mut Transaction<'_, Postgres>, id: &str| spoil(tx, id).await;
    is_dead_of(&server, &[], handle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_leaves_its_savepoint_is_dead_after_some_retries() {
    let server = PostgresServer::start().unwrap();
    let handle = async |tx: &mut Transaction<'_, Postgres>, id: &str| leave(tx, id).await;
    is_dead_of(&server, &[], handle).await;
}

/// A database that is there for all others holds back nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_transaction_is_idle_for_too_long_is_dead_after_some_retries() {
    let server = PostgresServer::start().unwrap();
    let aside = PgPool::connect(&server.url()).await.unwrap();
    let options = [("idle_in_transaction_session_timeout", "100ms")];
    let handle = async |tx: &mut Transaction<'_, Postgres>, id: &str| idle(tx, id, &aside).await;
    is_dead_of(&server, &options, handle).await;
}
