//! A lock around a transaction, released before its commit and after it.

use std::path::Path;

use idem_core::LockGuard;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};

use crate::rig::Rig;
use crate::scene::{held, is_held, lock};

/// One thing for sale, in a file that can be read while somebody writes.
async fn stock(folder: &Path) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(folder.join("stock.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let table = "CREATE TABLE stock (pieces INTEGER NOT NULL); INSERT INTO stock VALUES (1);";
    sqlx::raw_sql(table).execute(&pool).await.unwrap();
    pool
}

/// What a holder finds that comes after a sale, which releases its lock early or as it should.
async fn pieces_for_the_next(is_released_early: bool) -> i64 {
    let (rig, folder) = (Rig::new(), tempfile::tempdir().unwrap());
    let stock = stock(folder.path()).await;

    let first = held(&rig).await;
    let mut sale = stock.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let sell = sqlx::raw_sql("UPDATE stock SET pieces = pieces - 1");
    sell.execute(&mut *sale).await.unwrap();
    let refused = lock(&rig).acquire().await;
    assert!(is_held(&refused), "{refused:?}");

    if is_released_early {
        first.release().await.unwrap();
        let pieces = look(&held(&rig).await, &stock).await;
        sale.commit().await.unwrap();
        pieces
    } else {
        sale.commit().await.unwrap();
        first.release().await.unwrap();
        look(&held(&rig).await, &stock).await
    }
}

async fn look(_under: &LockGuard, stock: &SqlitePool) -> i64 {
    let pieces = sqlx::query_scalar("SELECT pieces FROM stock");
    pieces.fetch_one(stock).await.unwrap()
}

// N21
#[tokio::test]
async fn who_releases_before_the_commit_lets_the_next_holder_sell_the_same_thing() {
    assert_eq!(pieces_for_the_next(true).await, 1);
}

#[tokio::test]
async fn who_releases_after_the_commit_lets_the_next_holder_see_that_it_is_sold() {
    assert_eq!(pieces_for_the_next(false).await, 0);
}
