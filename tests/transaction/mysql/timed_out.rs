//! A server on which a wait in vain costs the whole transaction (`innodb_rollback_on_timeout`).

use std::sync::LazyLock;

use idem_core::{Error, Key, Policy};
use idem_tests::mariadb::MariaDbServer;
use sqlx::{MySql, Transaction};

use super::place;
use crate::base::Base;
use crate::shop::{Then, pay, pay_or_wait_briefly, refusal};

static SERVER: LazyLock<MariaDbServer> =
    LazyLock::new(|| MariaDbServer::start_with(&["--innodb-rollback-on-timeout=ON"]).unwrap());

fn key() -> Key {
    Key::new("waits", 1_i64).unwrap()
}

/// Goes on as if nothing had been, and commits.
async fn go_on(mut tx: Transaction<'_, MySql>) {
    for number in [8, 9] {
        let written = MySql::add(&mut tx, number).await;
        written.expect_err("what is written now would commit by itself");
    }
    let _ = tx.commit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_duplicate_had_done_before_its_wait_is_gone_and_nothing_is_written_after_it() {
    let place = place(&SERVER.url()).await;
    let mut first = place.begin().await;
    pay(&place, &mut first, 1, Then::End).await.unwrap();
    pay_or_wait_briefly(&place, &mut first, 1, Then::End)
        .await
        .unwrap();

    let mut tx = place.begin().await;
    MySql::add(&mut tx, 6).await.unwrap();
    let refused = refusal(pay(&place, &mut tx, 1, Then::End).await);
    // Not as in progress: who goes on after that, and commits, would have lost what it did before.
    assert!(matches!(refused, Error::Store { .. }), "{refused}");
    assert!(refused.is_retryable(), "{refused}");
    go_on(tx).await;

    let mut tx = place.begin().await;
    MySql::add(&mut tx, 6).await.unwrap();
    let refused = refusal(pay_or_wait_briefly(&place, &mut tx, 1, Then::End).await);
    assert!(refused.is_retryable(), "{refused}");
    go_on(tx).await;

    assert!(place.effects().await.is_empty());
    first.commit().await.unwrap();
    assert_eq!(place.effects().await, [1, 1]);
    // The connections are as good as any.
    for number in 2..=9 {
        let mut tx = place.begin().await;
        pay(&place, &mut tx, number, Then::End).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(place.effects().await.len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_goes_on_after_its_wait_is_told_and_has_no_record() {
    let place = place(&SERVER.url()).await;
    let mut other = place.begin().await;
    pay(&place, &mut other, 1, Then::End).await.unwrap();

    let mut tx = place.begin().await;
    MySql::add(&mut tx, 6).await.unwrap();
    let body = async |tx: &mut Transaction<'_, MySql>| {
        MySql::add(tx, 1).await?;
        let wait = "SET SESSION innodb_lock_wait_timeout = 1; \
                    SELECT 1 FROM idempotent_record FOR UPDATE";
        let waited = sqlx::raw_sql(wait).execute(&mut **tx).await;
        assert!(waited.is_err(), "the other one has its row");
        MySql::add(tx, 2).await?;
        anyhow::Ok(String::new())
    };
    let refused = refusal(place.idem.run_in(&mut tx, key(), Policy::new(), body).await);
    // The mark of the transaction is gone with it.
    assert!(matches!(refused, Error::OutcomeUnknown { .. }), "{refused}");
    go_on(tx).await;
    other.rollback().await.unwrap();
    // The body's own fault: its second effect was in no transaction any more.
    assert_eq!(place.effects().await, [2]);
    let mut tx = place.begin().await;
    let again = place
        .idem
        .run_in(&mut tx, key(), Policy::new(), async |_| anyhow::Ok(2));
    assert_eq!(again.await.unwrap(), 2);
}
