//! A message whose own body spoils the transaction in which its record would be kept.

use idem_core::consumer::{Consumer, Reason};
use idem_core::store::PostgresStore;
use idem_core::{Idempotency, idempotent};
use idem_tests::postgres::PostgresServer;
use sqlx::{PgPool, Postgres, Transaction};

use crate::rig::{Failure, RULES, is_retried_and_dead, meaning};

/// Keeps the failure of a statement to itself, after which PostgreSQL takes no other.
#[idempotent(prefix = "test:spoilt", key = "id", tx = tx)]
async fn spoil(tx: &mut Transaction<'_, Postgres>, id: &str) -> Result<(), Failure> {
    let _ = sqlx::query("SELECT 1 / 0").execute(&mut **tx).await;
    Ok(())
}

async fn handle(pool: &PgPool, id: &str) -> Result<(), Failure> {
    let mut tx = pool.begin().await.map_err(|_| Failure::Passing)?;
    spoil(&mut tx, id).await?;
    tx.commit().await.map_err(|_| Failure::Passing)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_spoils_its_own_transaction_is_dead_after_some_retries() {
    let server = PostgresServer::start().unwrap();
    let pool = PgPool::connect(&server.url()).await.unwrap();
    let store = PostgresStore::new(pool.clone());
    store.migrate().await.unwrap();
    let idem = Idempotency::builder(store).build().unwrap();
    let consumer = Consumer::new(meaning).rules(RULES.retries(2));
    let deliver = async |retries| {
        let call =
            async |id: idem_core::consumer::MessageId| idem.scope(handle(&pool, id.as_str())).await;
        consumer.handle(Some("m-1"), retries, call).await
    };
    is_retried_and_dead(2, Reason::Store, deliver).await;
}
