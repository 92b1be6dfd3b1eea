//! The tables of PostgreSQL, and what they have at the end.

use std::collections::BTreeMap;

use anyhow::Result;
use idem_core::store::PostgresStore;
use sqlx::PgPool;

use crate::ground::{Ground, LONGEST, Left, OnePostgres};

/// The table of records, the ledger (which call had its effect on which key), and the table of those
/// who write what was done beside it.
pub(crate) fn lay_out(ground: &OnePostgres) {
    with(ground, async |pool| {
        PostgresStore::new(pool.clone()).migrate().await.unwrap();
        // A vacuum forgets who has locked a row.
        let tables = "CREATE TABLE effect (key BIGINT NOT NULL, call BIGINT NOT NULL);
            CREATE TABLE done (key BIGINT PRIMARY KEY, call BIGINT NOT NULL);
            ALTER TABLE idempotent_record SET (autovacuum_enabled = false);";
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

pub(crate) fn left(ground: &OnePostgres) -> Result<Left> {
    const LEFT: &str = "SELECT count(*), count(*) FILTER (WHERE \
                        expire_at > extract(epoch FROM clock_timestamp() + $1) * 1000000) \
                        FROM idempotent_record";
    with(ground, async |pool| {
        let left = sqlx::query_as(LEFT).bind(LONGEST);
        let (records, endless): (i64, i64) = left.fetch_one(&pool).await?;
        Ok(Left {
            records: records.try_into()?,
            endless: endless.try_into()?,
        })
    })
}

/// Every record as it stands, and which transaction was the last to lock it: so does a renewal that is
/// told that its lock has gone.
pub(crate) fn pulse(ground: &OnePostgres) -> Result<String> {
    const ALL: &str = "SELECT coalesce(md5(string_agg(one::text || one.xmax::text, ',' \
                       ORDER BY key_hash)), '') FROM idempotent_record AS one";
    with(ground, async |pool| {
        Ok(sqlx::query_scalar(ALL).fetch_one(&pool).await?)
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
