//! A database whose tables and function did not come together.

use idem_core::{Error, StoreErrorKind};

use super::*;

async fn run(place: &Place<Postgres>, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&place.pool).await.unwrap();
}

async fn migrate(place: &Place<Postgres>) {
    let store = PostgresStore::new(place.pool.clone());
    store.migrate().await.unwrap();
}

/// A payment that is run, then replayed.
async fn is_of_use(place: &Place<Postgres>) {
    for _ in 0..2 {
        let mut tx = place.begin().await;
        let paid = pay(place, &mut tx, 1, Then::End).await;
        assert_eq!(paid.unwrap(), "run 1");
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn tables_that_were_dropped_are_made_again_beside_the_function() {
    let place = Postgres::place().await;
    let drop = "DROP TABLE idempotent_record; DROP TABLE idempotent_record_version";
    run(&place, drop).await;
    migrate(&place).await;
    is_of_use(&place).await;
}

#[tokio::test]
async fn a_function_that_is_missing_is_told_and_made_beside_the_tables() {
    let place = Postgres::place().await;
    run(&place, "DROP FUNCTION idempotent_enter_2").await;
    let mut tx = place.begin().await;
    let told = refusal(pay(&place, &mut tx, 1, Then::End).await);
    tx.rollback().await.unwrap();
    let Error::Store { source } = told else {
        panic!("not of the database: {told}");
    };
    assert_eq!(source.kind(), StoreErrorKind::Misconfigured);
    migrate(&place).await;
    is_of_use(&place).await;
}
