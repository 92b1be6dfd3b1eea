//! A table of what was done, written in another transaction than the effect. A lock of the database
//! keeps duplicates apart, so that only a fault between the two commits breaks it.

use idem_tests::history::What;
use sqlx::PgPool;

use crate::body::{Body, Call, Failed};

pub(crate) async fn pay(pool: &PgPool, call: &Call) -> Result<u64, Failed> {
    let [key, number] = [call.key, call.number].map(u64::cast_signed);
    let mut record = pool.begin().await?;
    let lock = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)");
    if !lock.bind(key).fetch_one(&mut *record).await? {
        return Err(Failed::unavailable("somebody is at it"));
    }
    let done = sqlx::query_scalar("SELECT call FROM done WHERE key = $1").bind(key);
    let done: Option<i64> = done.fetch_optional(&mut *record).await?;
    if let Some(done) = done {
        return Ok(done.cast_unsigned());
    }
    let value = transfer(pool, call).await?;
    let add = sqlx::query("INSERT INTO done VALUES ($1, $2)").bind(key);
    add.bind(number).execute(&mut *record).await?;
    call.note(What::Committing);
    record.commit().await?;
    Ok(value)
}

/// On another connection, which commits by itself.
async fn transfer(pool: &PgPool, call: &Call) -> Result<u64, Failed> {
    let body = Body::begin(call, 0);
    call.prepare().await;
    if body.declines() {
        return body.end_without_effect(Failed::Declined);
    }
    if let Err(error) = call.add_effect(pool).await {
        return body.end_without_effect(error.into());
    }
    call.clear_up().await;
    body.end()
}
