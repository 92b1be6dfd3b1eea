//! What rows and their locks have to stand, with somebody else at the same table.
#![expect(missing_docs, reason = "the names are sentences")]

use std::time::{Duration, Instant};

use idem_core::StoreErrorKind;
use idem_core::record::{ClaimReply, Outcome, Settle, SettleReply, Subject, Terms};
use idem_core::store::{Store, StoreKey};

use super::locked::hold;
use super::{Aside, Database};
use crate::attempt::{TERMS, claim, codes, finish, grant, key, owner};

/// Whether or not the tables were there.
pub async fn migrations_at_once_are_one<D: Database>(database: &D) {
    let mut aside = database.aside().await;
    aside.run("DROP TABLE IF EXISTS idempotent_record").await;
    aside
        .run("DROP TABLE IF EXISTS idempotent_record_version")
        .await;
    tokio::join!(
        database.fresh_store(),
        database.fresh_store(),
        database.fresh_store(),
        database.fresh_store()
    );
    let versions = "SELECT count(*) FROM idempotent_record_version";
    assert_eq!(aside.count(versions).await, 1);
}

/// Whoever migrates without our lock is refused, and does not make a second one.
pub async fn a_version_is_written_once<D: Database>(database: &D) {
    database.fresh_store().await;
    let again = "INSERT INTO idempotent_record_version \
                 SELECT version FROM idempotent_record_version";
    let written = database.aside().await.try_run(again).await;
    written.unwrap_err();
}

/// A call that changes nothing leaves no row, not even an empty one.
pub async fn what_changes_nothing_leaves_no_row<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    let now = store.now().await.unwrap();
    let mut op = claim(1, now, TERMS);
    op.token = Some(Subject::of("somebody"));
    let answer = store.claim(&key("scene", "nothing"), &op).await.unwrap();
    assert_eq!(answer.reply, ClaimReply::TokenRejected);
    let rows = "SELECT count(*) FROM idempotent_record WHERE business_key = 'nothing'";
    assert_eq!(database.aside().await.count(rows).await, 0);
}

/// Nothing but the hash tells two rows apart that were made in one microsecond.
pub async fn a_row_is_told_from_others_by_its_key<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    let key = key("scene", "twin");
    claim_of(&store, &key, 1, TERMS).await;
    let columns = "request_id, status, fence, attempt, fingerprint, checkpoint, lease_until, \
                   response_data, expire_at, record, create_time, update_time";
    let copy = format!(
        "INSERT INTO idempotent_record (key_hash, business_type, business_key, {columns}) \
         SELECT {}, business_type, 'copy', {columns} FROM idempotent_record \
         WHERE business_key = 'twin'",
        D::OTHER_HASH
    );
    let mut aside = database.aside().await;
    aside.run(&copy).await;
    settled(&store, &key, 1).await;
    let running = "SELECT count(*) FROM idempotent_record \
                   WHERE business_key = 'copy' AND status = 0";
    assert_eq!(aside.count(running).await, 1);
}

pub async fn a_row_tells_when_it_was_made_and_changed<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    let key = key("scene", "times");
    let granted = claim_of(&store, &key, 1, TERMS).await;
    passed(&store, granted).await;
    settled(&store, &key, 1).await;
    let told = format!(
        "SELECT count(*) FROM idempotent_record WHERE business_key = 'times' \
         AND create_time = {granted} AND update_time > create_time"
    );
    assert_eq!(database.aside().await.count(&told).await, 1);
}

pub async fn a_purge_takes_the_oldest_and_what_is_not_locked<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    let lives = |ms| Terms {
        lease: Duration::from_millis(1),
        expire: Duration::from_millis(ms),
        doubt: Duration::from_millis(1),
        ..TERMS
    };
    let mut last = 0;
    for (name, ms) in [("old", 1), ("held", 15), ("young", 30)] {
        last = claim_of(&store, &key("purge", name), 1, lives(ms)).await + 40_000;
    }
    finish(&store, &key("purge", "live"), 1, TERMS).await;
    passed(&store, last).await;
    let left = |name| {
        let sql = format!("SELECT count(*) FROM idempotent_record WHERE business_key = '{name}'");
        async move { database.aside().await.count(&sql).await }
    };
    assert_eq!(D::purge(&store, 1).await, 1);
    assert_eq!((left("old").await, left("young").await), (0, 1));
    let mut other = hold(database, "purge").await;
    assert_eq!(D::purge(&store, 10).await, 1);
    other.run("ROLLBACK").await;
    assert_eq!((left("held").await, left("young").await), (1, 0));
    assert_eq!(left("live").await, 1);
}

// CASES N17, N34
pub async fn a_lease_counts_from_its_grant<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    let key = key("granted", "held");
    let brief = Terms {
        lease: Duration::from_millis(1),
        ..TERMS
    };
    let now = store.now().await.unwrap();
    let mut first = claim(1, now, brief);
    first.checkpoint = false;
    grant(store.claim(&key, &first).await.unwrap().reply);
    let mut other = hold(database, "granted").await;
    let second = claim(2, now, TERMS);
    let (answer, released) = tokio::join!(store.claim(&key, &second), async {
        somebody_waits(database).await;
        let released = store.now().await.unwrap();
        other.run("ROLLBACK").await;
        released
    });
    let granted = grant(answer.unwrap().reply);
    assert!(granted.since >= released, "{granted:?} before {released:?}");
}

/// By somebody who does not ask for locks of ours.
// CASES N12
pub async fn a_row_inserted_meanwhile_is_seen<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    let key = key("inserted", "held");
    finish(&store, &key, 1, TERMS).await;
    let mut other = database.aside().await;
    let name = "copy_of_row";
    other
        .run(&format!(
            "CREATE TABLE {name} AS SELECT * FROM idempotent_record \
             WHERE business_type = 'shop:inserted'"
        ))
        .await;
    let delete = "DELETE FROM idempotent_record WHERE business_type = 'shop:inserted'";
    other.run(delete).await;
    other.run(D::BEGIN).await;
    let insert = format!("INSERT INTO idempotent_record SELECT * FROM {name}");
    other.run(&insert).await;
    let now = store.now().await.unwrap();
    let second = claim(2, now, TERMS);
    let (answer, ()) = tokio::join!(store.claim(&key, &second), async {
        somebody_waits(database).await;
        other.run("COMMIT").await;
    });
    let answer = answer.unwrap().reply;
    assert!(matches!(answer, ClaimReply::Completed { .. }), "{answer:?}");
}

pub(super) async fn somebody_waits<D: Database>(database: &D) {
    let mut aside = database.aside().await;
    let begin = Instant::now();
    while aside.count(D::WAITING).await == 0 {
        assert!(begin.elapsed() < Duration::from_secs(10), "nobody waits");
        tokio::time::sleep(D::BETWEEN_LOOKS).await;
    }
}

/// Calls that are dropped anywhere leave no open transaction.
pub async fn a_dropped_call_leaves_no_transaction<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    let now = store.now().await.unwrap();
    for number in 0..300_u64 {
        let key = key("dropped", &(number % 5).to_string());
        let op = claim(number, now, TERMS);
        let given_up = store.claim(&key, &op);
        let patience = Duration::from_micros(number * 10);
        // Some are answered; the point is what the others leave.
        drop(tokio::time::timeout(patience, given_up).await);
    }
    let mut aside = database.aside().await;
    let begin = Instant::now();
    while aside.count(D::OPEN).await > 0 {
        assert!(begin.elapsed() < Duration::from_secs(10), "some are open");
        tokio::time::sleep(D::BETWEEN_LOOKS).await;
    }
    finish(&store, &key("dropped", "after"), 1, TERMS).await;
}

pub async fn a_foreign_table_and_a_later_format_are_refused_and_left_alone<D: Database>(
    database: &D,
) {
    let mut aside = database.aside().await;
    let foreign = "CREATE TABLE idempotent_record AS SELECT 7 AS id";
    aside.run(foreign).await;
    let store = database.unprepared().await;
    let refused = D::migrate(&store).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Misconfigured);
    let kept = "SELECT count(*) FROM idempotent_record WHERE id = 7";
    assert_eq!(aside.count(kept).await, 1);

    aside.run("DROP TABLE idempotent_record").await;
    D::migrate(&store).await.unwrap();
    let later = "UPDATE idempotent_record_version SET version = 2";
    aside.run(later).await;
    let refused = D::migrate(&store).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Misconfigured);
    assert!(refused.to_string().contains("format 2"), "{refused}");
}

/// More milliseconds than fit into 31 bits, more seconds than that, and more than a clock has.
pub async fn a_limit_may_be_longer_than_a_database_counts<D: Database>(database: &D) {
    let long = [
        Duration::from_hours(60 * 24),
        Duration::from_hours(200 * 365 * 24),
        Duration::MAX,
    ];
    let store = database.fresh_store().await;
    for (number, limit) in (1..).zip(long) {
        let store = D::limited(&store, limit);
        finish(&store, &key("limit", &number.to_string()), number, TERMS).await;
        assert_eq!(D::purge(&store, 10).await, 0);
    }
}

pub async fn without_its_tables_every_verb_says_what_to_do<D: Database>(database: &D) {
    let store = database.unprepared().await;
    let missing = store.peek(&key("order", "1")).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::Misconfigured);
    assert!(missing.to_string().contains("migrate()"), "{missing}");
}

pub async fn a_check_names_tables_that_are_not_there<D: Database>(database: &D) {
    let store = database.unprepared().await;
    let findings = store.check().await.unwrap();
    let missing = findings.iter().find(|finding| finding.code == "no_tables");
    assert!(
        missing.unwrap().detail.contains("migrate()"),
        "{findings:?}"
    );
    D::migrate(&store).await.unwrap();
    assert!(!codes(&store).await.contains(&"no_tables"));
}

/// Claims what is free; says when it was granted, in microseconds.
async fn claim_of<S: Store>(store: &S, key: &StoreKey, number: u64, terms: Terms) -> u64 {
    let now = store.now().await.unwrap();
    let answer = store.claim(key, &claim(number, now, terms)).await.unwrap();
    grant(answer.reply).since.as_micros()
}

pub(super) async fn success<S: Store>(store: &S, number: u64) -> Settle {
    Settle {
        owner: owner(number),
        terms: TERMS,
        outcome: Outcome::Success(None),
        not_after: store.now().await.unwrap().after(TERMS.limit),
        echo: None,
    }
}

pub(super) async fn settled<S: Store>(store: &S, key: &StoreKey, number: u64) {
    let settle = success(store, number).await;
    let answer = store.settle(key, &settle).await.unwrap();
    assert_eq!(answer.reply, SettleReply::Settled);
}

/// Waits until the store's clock is past a moment.
pub(super) async fn passed<S: Store>(store: &S, micros: u64) {
    while store.now().await.unwrap().as_micros() <= micros {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
