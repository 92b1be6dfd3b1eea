//! A record whose time is over, which is purged while the body of the same request runs.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_of_what_is_over_takes_nothing_from_a_body_that_runs() {
    let place = Postgres::place().await;
    let store = PostgresStore::new(place.pool.clone());
    let key = || Key::new("purged", "1").unwrap();
    let mut tx = place.begin().await;
    let body = async |_: &mut Transaction<'_, Postgres>| anyhow::Ok("first".to_owned());
    let first = place.idem.run_in(&mut tx, key(), Policy::new(), body).await;
    assert_eq!(first.unwrap(), "first");
    tx.commit().await.unwrap();
    let over = sqlx::raw_sql("UPDATE idempotent_record SET expire_at = 1");
    over.execute(&place.pool).await.unwrap();

    let mut tx = place.begin().await;
    let body = async |tx: &mut Transaction<'_, Postgres>| {
        Postgres::add(tx, 1).await?;
        assert_eq!(store.purge(10).await?, 1);
        anyhow::Ok("second".to_owned())
    };
    let second = place.idem.run_in(&mut tx, key(), Policy::new(), body).await;
    assert_eq!(second.unwrap(), "second");
    tx.commit().await.unwrap();

    let mut tx = place.begin().await;
    let body = async |_: &mut Transaction<'_, Postgres>| anyhow::Ok("third".to_owned());
    let third = place.idem.run_in(&mut tx, key(), Policy::new(), body).await;
    assert_eq!(third.unwrap(), "second");
    assert_eq!(place.effects().await, [1]);
}
