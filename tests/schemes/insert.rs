//! Insert a row, or get the one in its way.

mod dropped;

use std::collections::HashSet;

use idem_core::sql::{InsertError, Insertion, SqlError};
use sqlx::Sqlite;
use tokio::task::JoinSet;

use crate::bed::{Bed, Bill, Billed, Fresh, Level};
use crate::transition::is_serialization_failure;

pub(crate) use dropped::*;

fn bill(request: &str, number: &str) -> Bill {
    Bill {
        request: request.to_owned(),
        number: number.to_owned(),
        shop: 1,
        asked: request.to_owned(),
        is_silent: false,
    }
}

async fn with_bills<DB: Bed>(fresh: &Fresh<DB>) {
    for sql in [
        "CREATE TABLE shops (id BIGINT NOT NULL PRIMARY KEY)".to_owned(),
        "INSERT INTO shops VALUES (1)".to_owned(),
        format!(
            "CREATE TABLE bills (id {id}, request_id {text} NOT NULL, \
             shop BIGINT NOT NULL, number {text} NOT NULL, \
             FOREIGN KEY (shop) REFERENCES shops (id))",
            id = DB::GROWING,
            text = DB::TEXT
        ),
        "CREATE UNIQUE INDEX bills_by_request ON bills (request_id)".to_owned(),
        "CREATE UNIQUE INDEX bills_by_number ON bills (shop, number)".to_owned(),
    ] {
        DB::execute(&fresh.pool, &sql).await.unwrap();
    }
}

async fn alone<DB: Bed>(fresh: &Fresh<DB>, name: &str, bill: &Bill) -> Billed {
    let mut connection = fresh.pool.acquire().await.unwrap();
    DB::bill(&mut connection, name, bill).await
}

async fn count<DB: Bed>(fresh: &Fresh<DB>) -> i64 {
    DB::numbers(&fresh.pool, "SELECT count(*) FROM bills").await[0]
}

const NAME: &str = "bills_by_request";

pub(crate) async fn the_first_inserts_and_the_second_gets_its_row<DB: Bed>(fresh: Fresh<DB>) {
    with_bills(&fresh).await;
    let first = alone(&fresh, NAME, &bill("r-1", "n-1")).await.unwrap();
    assert!(first.is_new());
    let second = alone(&fresh, NAME, &bill("r-1", "n-2")).await.unwrap();
    assert_eq!(second, Insertion::Existing(first.into_row()));
    assert_eq!(second.into_row().1, "n-1");
    assert_eq!(count(&fresh).await, 1);
}

pub(crate) async fn a_transaction_goes_on_after_each_outcome_and_commits<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_bills(&fresh).await;
    let first = alone(&fresh, NAME, &bill("r-1", "n-1")).await.unwrap();
    let mut tx = DB::begin(&fresh.pool).await;
    let second = DB::bill(&mut tx, NAME, &bill("r-1", "n-2")).await.unwrap();
    assert_eq!(second, Insertion::Existing(first.into_row()));
    let clash = DB::bill(&mut tx, NAME, &bill("r-2", "n-1"))
        .await
        .unwrap_err();
    assert!(matches!(clash, InsertError::Conflict { .. }), "{clash:?}");
    let third = DB::bill(&mut tx, NAME, &bill("r-3", "n-3")).await.unwrap();
    assert!(third.is_new());
    let again = DB::bill(&mut tx, NAME, &bill("r-3", "n-3")).await.unwrap();
    assert_eq!(again, Insertion::Existing(third.into_row()));
    DB::commit(tx).await.unwrap();
    assert_eq!(count(&fresh).await, 2);
}

pub(crate) async fn of_fifty_one_inserts<DB: Bed>(fresh: Fresh<DB>) {
    with_bills(&fresh).await;
    let mut tasks = JoinSet::new();
    for number in 0..50 {
        let fresh = fresh.clone();
        let bill = bill("r-1", &format!("n-{number}"));
        tasks.spawn(async move { alone(&fresh, NAME, &bill).await.unwrap() });
    }
    let all = tasks.join_all().await;
    assert_eq!(all.iter().filter(|bill| bill.is_new()).count(), 1);
    let row = all[0].clone().into_row();
    assert!(all.into_iter().all(|bill| bill.into_row() == row));
    assert_eq!(count(&fresh).await, 1);
}

/// Each in a transaction, begun again where databases ask for it.
pub(crate) async fn of_fifty_transactions_one_inserts<DB: Bed>(fresh: Fresh<DB>) {
    with_bills(&fresh).await;
    let mut tasks = JoinSet::new();
    for number in 0..50 {
        let fresh = fresh.clone();
        let bill = bill("r-1", &format!("n-{number}"));
        tasks.spawn(async move {
            loop {
                let mut tx = DB::begin(&fresh.pool).await;
                match DB::bill(&mut tx, NAME, &bill).await {
                    Ok(billed) => match DB::commit(tx).await {
                        Ok(()) => return billed.is_new(),
                        Err(error) => assert!(is_serialization_failure(&error), "{error:?}"),
                    },
                    Err(error) => assert!(error.is_retryable(), "{error:?}"),
                }
            }
        });
    }
    let all = tasks.join_all().await;
    assert_eq!(all.into_iter().filter(|is_new| *is_new).count(), 1);
    assert_eq!(count(&fresh).await, 1);
}

pub(crate) async fn another_constraint_is_a_conflict_that_names_it<DB: Bed>(fresh: Fresh<DB>) {
    with_bills(&fresh).await;
    let first = alone(&fresh, NAME, &bill("r-1", "n-1")).await.unwrap();
    match alone(&fresh, NAME, &bill("r-2", "n-1")).await {
        Err(InsertError::Conflict { constraint, .. }) => {
            assert!(DB::BY_NUMBER.contains(&&*constraint), "{constraint}");
        }
        other => panic!("{other:?}"),
    }
    // Which of two is reported is the database's choice; the request is the same in any case.
    let both = alone(&fresh, NAME, &bill("r-1", "n-1")).await.unwrap();
    assert_eq!(both, Insertion::Existing(first.into_row()));
    assert_eq!(count(&fresh).await, 1);
}

const OTHER_NAMES: &[&str] = &["", "bills", "bills_by", "by_request", "request_id"];

/// The bill is refused, and its select finds nothing: what is said depends on the name alone.
async fn only_these_names_are_meant<DB: Bed>(fresh: &Fresh<DB>, refused: Bill, names: &[&str]) {
    let refused = Bill {
        asked: "nobody".to_owned(),
        ..refused
    };
    let mut tx = DB::begin(&fresh.pool).await;
    for name in names {
        let error = DB::bill(&mut tx, name, &refused).await.unwrap_err();
        assert!(matches!(error, InsertError::NotSeen), "{name}: {error:?}");
        assert!(error.is_retryable());
    }
    let others = [DB::BY_REQUEST, DB::BY_NUMBER, OTHER_NAMES].concat();
    for name in others.into_iter().filter(|name| !names.contains(name)) {
        let error = DB::bill(&mut tx, name, &refused).await.unwrap_err();
        let is_conflict = matches!(error, InsertError::Conflict { .. });
        assert!(is_conflict, "{name}: {error:?}");
        assert!(!error.is_retryable());
    }
}

/// Also behind a value that looks like a name.
pub(crate) async fn a_constraint_is_known_by_its_names<DB: Bed>(fresh: Fresh<DB>) {
    with_bills(&fresh).await;
    let forged = "x' for key 'bills_by_number";
    for request in ["r-1", "", "it's", "it'", forged] {
        let kept = bill(request, request);
        alone(&fresh, NAME, &kept).await.unwrap();
        only_these_names_are_meant(&fresh, bill(request, "other"), DB::BY_REQUEST).await;
        only_these_names_are_meant(&fresh, bill("other", request), DB::BY_NUMBER).await;
    }
}

pub(crate) async fn a_constraint_is_known_in_every_language<DB: Bed>(fresh: Fresh<DB>) {
    with_bills(&fresh).await;
    alone(&fresh, NAME, &bill("r-1", "n-1")).await.unwrap();
    let clash = bill("r-2", "n-1");
    let mut said = HashSet::new();
    for speak in DB::TONGUES {
        let mut tx = DB::begin(&fresh.pool).await;
        DB::within(&mut tx, speak).await.unwrap();
        match DB::bill(&mut tx, NAME, &clash).await {
            Err(InsertError::Conflict { constraint, source }) => {
                assert!(DB::BY_NUMBER.contains(&&*constraint), "{constraint}");
                said.insert(source.as_database_error().unwrap().message().to_owned());
            }
            other => panic!("{speak}: {other:?}"),
        }
    }
    assert_eq!(said.len(), DB::TONGUES.len(), "{said:?}");
}

pub(crate) async fn other_violations_pass_with_their_kind<DB: Bed>(fresh: Fresh<DB>) {
    with_bills(&fresh).await;
    let mut tx = DB::begin(&fresh.pool).await;
    let nowhere = Bill {
        shop: 7,
        ..bill("r-1", "n-1")
    };
    match DB::bill(&mut tx, NAME, &nowhere).await {
        Err(InsertError::Sql(SqlError::Database { source })) => {
            let error = source.as_database_error().unwrap();
            assert!(error.is_foreign_key_violation(), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(
        DB::bill(&mut tx, NAME, &bill("r-1", "n-1"))
            .await
            .unwrap()
            .is_new()
    );
    DB::commit(tx).await.unwrap();
    assert_eq!(count(&fresh).await, 1);
}

// CASES N12
pub(crate) async fn a_transaction_that_read_before_sees_the_row_or_begins_again<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_bills(&fresh).await;
    DB::execute(&fresh.pool, "CREATE TABLE seen (id BIGINT)")
        .await
        .unwrap();
    let mut early = DB::begin(&fresh.pool).await;
    DB::within(&mut early, "SELECT * FROM seen").await.unwrap();
    let first = alone(&fresh, NAME, &bill("r-1", "n-1")).await.unwrap();
    match DB::bill(&mut early, NAME, &bill("r-1", "n-2")).await {
        Ok(second) => {
            assert!(!DB::HAS_ONE_SNAPSHOT(fresh.level));
            assert_eq!(second, Insertion::Existing(first.into_row()));
            DB::commit(early).await.unwrap();
        }
        Err(error) => {
            assert!(DB::HAS_ONE_SNAPSHOT(fresh.level));
            assert!(error.is_retryable(), "{error:?}");
        }
    }
}

pub(crate) async fn an_insert_that_hides_its_conflict_is_not_taken_for_new<DB: Bed>(
    fresh: Fresh<DB>,
) {
    with_bills(&fresh).await;
    let silent = Bill {
        is_silent: true,
        ..bill("r-1", "n-1")
    };
    assert!(alone(&fresh, NAME, &silent).await.unwrap().is_new());
    assert!(!alone(&fresh, NAME, &silent).await.unwrap().is_new());
    let nobody = Bill {
        asked: "nobody".to_owned(),
        ..silent
    };
    let error = alone(&fresh, NAME, &nobody).await.unwrap_err();
    assert!(matches!(error, InsertError::NotSeen), "{error:?}");
    let unfit = Bill {
        asked: "nobody".to_owned(),
        ..bill("r-2", "n-2")
    };
    let error = alone(&fresh, NAME, &unfit).await.unwrap_err();
    assert!(matches!(error, InsertError::NotFound), "{error:?}");
}

/// A table whose requests are unique, or the transaction is rolled back, with a first row.
async fn with_one_bill_that_rolls_back() -> (Fresh<Sqlite>, Insertion<(i64, String)>) {
    let fresh = Sqlite::fresh(Level::Serializable).await;
    let table = "CREATE TABLE bills (id INTEGER PRIMARY KEY, \
                 request_id TEXT UNIQUE ON CONFLICT ROLLBACK, shop INTEGER, number TEXT)";
    Sqlite::execute(&fresh.pool, table).await.unwrap();
    let first = alone(&fresh, "bills.request_id", &bill("r-1", "n-1")).await;
    (fresh, first.unwrap())
}

pub(crate) async fn a_constraint_that_rolls_back_is_told() {
    let (fresh, _) = with_one_bill_that_rolls_back().await;
    for commits in [false, true] {
        let mut tx = Sqlite::begin(&fresh.pool).await;
        let name = "bills.request_id";
        let other = Sqlite::bill(&mut tx, name, &bill("r-2", "n-2")).await;
        assert!(other.unwrap().is_new());
        let error = Sqlite::bill(&mut tx, name, &bill("r-1", "n-1")).await;
        let error = error.unwrap_err();
        assert!(matches!(error, InsertError::RolledBack { .. }), "{error:?}");
        assert!(!error.is_retryable());
        if commits {
            tx.commit().await.unwrap_err();
        } else {
            tx.rollback().await.unwrap();
        }
        assert_eq!(count(&fresh).await, 1);
    }
}

pub(crate) async fn a_constraint_that_rolls_back_alone_is_as_good_as_any() {
    let (fresh, first) = with_one_bill_that_rolls_back().await;
    let second = alone(&fresh, "bills.request_id", &bill("r-1", "n-2")).await;
    assert_eq!(second.unwrap(), Insertion::Existing(first.into_row()));
}
