//! The tables of PostgreSQL, and what they have at the end.

use std::collections::BTreeMap;

use idem_core::store::PostgresStore;
use sqlx::PgPool;

use crate::ground::{Ground, OnePostgres};

/// The table of records, the ledger (which call had its effect on which key), and the table of those
/// who write what was done beside it.
pub(crate) fn lay_out(ground: &OnePostgres) {
    with(ground, async |pool| {
        PostgresStore::new(pool.clone()).migrate().await.unwrap();
        let tables = "CREATE TABLE effect (key BIGINT NOT NULL, call BIGINT NOT NULL);
            CREATE TABLE done (key BIGINT PRIMARY KEY, call BIGINT NOT NULL);";
        sqlx::raw_sql(tables).execute(&pool).await.unwrap();
    });
}

/// The effects of each key, by the calls that had them.
pub(crate) fn rows(ground: &OnePostgres) -> BTreeMap<u64, Vec<u64>> {
    with(ground, async |pool| {
        let all = sqlx::query_as("SELECT key, call FROM effect");
        let all: Vec<(i64, i64)> = all.fetch_all(&pool).await.unwrap();
        let mut rows: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (key, call) in all {
            rows.entry(key.cast_unsigned())
                .or_default()
                .push(call.cast_unsigned());
        }
        rows
    })
}

fn with<T>(ground: &OnePostgres, task: impl AsyncFnOnce(PgPool) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let pool = PgPool::connect(&ground.direct_url()).await.unwrap();
        task(pool).await
    })
}
