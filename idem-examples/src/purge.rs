//! Records in a database do not go by themselves, as those in Redis do: somebody has to delete
//! what has expired.

use std::future::Future;
use std::time::Duration;

use sqlx::Pool;
use tokio::time::interval;

use crate::database::Dialect;

const EVERY: Duration = Duration::from_mins(1);

/// Small, so that nobody waits for long behind one of these transactions.
const BATCH: u32 = 1000;

/// Deletes expired records once a minute, until `until` ends. Any number of servers may do so at
/// once.
///
/// # Cancel safety
/// Dropped, it leaves the rest to the next one.
pub async fn keep_purged<DB: Dialect>(pool: Pool<DB>, until: impl Future<Output = ()>) {
    tokio::select! {
        () = until => {}
        () = each_minute(&pool) => {}
    }
}

async fn each_minute<DB: Dialect>(pool: &Pool<DB>) {
    let mut minutes = interval(EVERY);
    loop {
        minutes.tick().await;
        if let Err(error) = purge(pool).await {
            tracing::warn!(%error, "expired records could not be deleted");
        }
    }
}

async fn purge<DB: Dialect>(pool: &Pool<DB>) -> anyhow::Result<()> {
    while DB::purge(pool, BATCH).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use sqlx::Sqlite;

    use super::*;
    use crate::database;

    #[tokio::test]
    async fn what_has_expired_is_deleted_and_nothing_else() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let pool = database::sqlite(&folder.path().join("orders.sqlite")).await?;
        let tokens = Sqlite::records(&pool).await?.tokens("order:submit");
        tokens.issue("alice", EVERY).await?;
        sqlx::query("UPDATE idempotent_record SET expire_at = 1")
            .execute(&pool)
            .await?;
        tokens.issue("bob", EVERY).await?;
        purge(&pool).await?;
        let left: Vec<bool> = sqlx::query_scalar("SELECT expire_at > 1 FROM idempotent_record")
            .fetch_all(&pool)
            .await?;
        assert_eq!(left, [true]);
        Ok(())
    }
}
