//! Functions that keep their record in a transaction of their caller.

use idem_core::transaction::Database;
use idem_core::{Attempt, Error, idempotent};
use sqlx::{PgTransaction, Postgres, Transaction};

struct Request {
    order_no: String,
}

async fn insert(tx: &mut Transaction<'_, Postgres>, order_no: &str) -> Result<(), Error> {
    let _ = (tx, order_no);
    Ok(())
}

#[idempotent(prefix = "free", key = "request.order_no", tx = tx)]
async fn free(tx: &mut Transaction<'_, Postgres>, request: Request) -> Result<String, Error> {
    let _ = Attempt::current();
    insert(tx, &request.order_no).await?;
    insert(&mut *tx, &request.order_no).await?;
    Ok(request.order_no)
}

#[idempotent(prefix = "alias", key = order_no, tx = conn, on_duplicate = "reject", wait = "5s")]
async fn alias(order_no: &str, conn: &mut PgTransaction<'_>) -> Result<(), Error> {
    if order_no.is_empty() {
        return Ok(());
    }
    insert(conn, order_no).await
}

#[idempotent(prefix = "idle", key = order_no, tx = _tx, fingerprint = "order_no")]
async fn idle(order_no: u64, _tx: &mut sqlx::Transaction<'_, Postgres>) -> Result<u64, Error> {
    Ok(order_no)
}

#[idempotent(prefix = "apart", key = order_no, tx = none)]
async fn apart(order_no: u64, tx: &mut Transaction<'_, Postgres>) -> Result<u64, Error> {
    insert(tx, "").await?;
    Ok(order_no)
}

#[idempotent(prefix = "generic", key = order_no, tx = tx)]
async fn generic<D: Database>(order_no: u64, tx: &mut Transaction<'_, D>) -> Result<u64, Error> {
    let _ = tx;
    Ok(order_no)
}

#[deny(unused_mut)]
#[idempotent(prefix = "mutable", key = order_no, tx = tx)]
async fn mutable(mut tx: &mut PgTransaction<'_>, order_no: u64) -> Result<u64, Error> {
    let tx: &mut &mut PgTransaction<'_> = &mut tx;
    insert(tx, "").await?;
    Ok(order_no)
}

struct Service {
    tenant: String,
}

impl Service {
    #[idempotent(
        prefix = "method",
        key = "{self.tenant}:{order_no}",
        tx = tx,
        on_error = "replay"
    )]
    async fn method(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        order_no: u64,
    ) -> Result<u64, Stored> {
        insert(tx, &self.tenant).await?;
        Ok(order_no)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Stored;

impl From<Error> for Stored {
    fn from(_: Error) -> Self {
        Self
    }
}

#[async_trait::async_trait]
trait Pays {
    async fn pay(&self, tx: &mut Transaction<'_, Postgres>, order_no: u64) -> Result<u64, Error>;
}

#[async_trait::async_trait]
impl Pays for Service {
    #[idempotent(prefix = "boxed", key = "{self.tenant}:{order_no}", tx = tx)]
    async fn pay(&self, tx: &mut Transaction<'_, Postgres>, order_no: u64) -> Result<u64, Error> {
        insert(tx, &self.tenant).await?;
        Ok(order_no)
    }
}

/// Futures go on to be `Send`.
async fn in_a_task(mut tx: Transaction<'static, Postgres>) {
    fn sent<F: Future + Send>(future: F) -> F {
        future
    }
    let service = Service {
        tenant: "a".into(),
    };
    let request = Request {
        order_no: "1".into(),
    };
    let _ = sent(free(&mut tx, request)).await;
    let _ = sent(alias("1", &mut tx)).await;
    let _ = sent(idle(1, &mut tx)).await;
    let _ = sent(apart(1, &mut tx)).await;
    let _ = sent(generic(1, &mut tx)).await;
    let _ = sent(service.method(&mut tx, 1)).await;
    let _ = sent(service.pay(&mut tx, 1)).await;
}

fn main() {
    let _ = in_a_task;
}
