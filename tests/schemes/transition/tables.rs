//! The tables that a transition writes to: ids, names, and what stands in them.

use idem_core::sql::SqlError;
use idem_core::states::{Answer, Cause, Transition, TransitionError};
use tokio::task::JoinSet;

use super::{ORDERS, Order, apply, ask, is_applied, orders, with_orders};
use crate::bed::{Answered, Bed, Fresh};

// CASES N16
pub(crate) async fn ids_that_collations_confuse_are_apart<DB: Bed>(fresh: Fresh<DB>) {
    let table = "CREATE TABLE papers (id TEXT_KEY NOT NULL PRIMARY KEY, \
                 status INTEGER NOT NULL, version BIGINT NOT NULL)";
    let papers = Transition::<Order>::on("papers").log("paper_event");
    papers.migrate(&fresh.pool).await.unwrap();
    DB::execute(&fresh.pool, &table.replace("TEXT_KEY", DB::TEXT))
        .await
        .unwrap();
    let insert = "INSERT INTO papers VALUES ('Ordér-A', 1, 1)";
    DB::execute(&fresh.pool, insert).await.unwrap();
    let events = ["Pay-é", "pay-é", "Pay-e", "Pay-é ", "Pay-e\u{301}"];
    for (number, event) in (0..).zip(events) {
        let mut tx = DB::begin(&fresh.pool).await;
        let ask = ask(Order::Paid, event);
        let answer = DB::apply_text(&papers, &mut tx, "Ordér-A", &ask).await;
        DB::commit(tx).await.unwrap();
        match answer.unwrap() {
            Answer::Applied { .. } => assert_eq!(number, 0),
            Answer::Conflict { cause, .. } => assert_eq!(cause, Cause::OtherEvent, "{event}"),
            other => panic!("{event}: {other:?}"),
        }
    }
    // The log has the row's own id. A database that takes another one for it finds the event too.
    let mut tx = DB::begin(&fresh.pool).await;
    let ask = ask(Order::Paid, "Pay-é");
    let answer = DB::apply_text(&papers, &mut tx, "ordér-a", &ask).await;
    let answer = answer.unwrap();
    let is_right = matches!(answer, Answer::AlreadyThere { .. } | Answer::NotFound);
    assert!(is_right, "{answer:?}");
}

/// Two rows, of ids that are not UTF-8, as a UUID hardly ever is.
async fn papers_by_bytes<DB: Bed>(fresh: &Fresh<DB>) -> Transition<Order> {
    let [bytes, begin] = DB::BYTES;
    let table = format!(
        "CREATE TABLE papers (id {bytes} NOT NULL PRIMARY KEY, \
         status INTEGER NOT NULL, version BIGINT NOT NULL)"
    );
    DB::execute(&fresh.pool, &table).await.unwrap();
    let insert =
        format!("INSERT INTO papers VALUES ({begin}FF00FE01', 1, 1), ({begin}FF00FE02', 1, 1)");
    DB::execute(&fresh.pool, &insert).await.unwrap();
    let papers = Transition::on("papers");
    papers.migrate(&fresh.pool).await.unwrap();
    papers
}

pub(crate) async fn ids_of_bytes_are_apart<DB: Bed>(fresh: Fresh<DB>) {
    let papers = papers_by_bytes(&fresh).await;
    let pay = ask(Order::Paid, "pay-1");
    let apply = async |id: &[u8]| {
        let mut tx = DB::begin(&fresh.pool).await;
        let answer = DB::apply_bytes(&papers, &mut tx, id, &pay).await.unwrap();
        DB::commit(tx).await.unwrap();
        answer
    };
    for last in [1, 2] {
        let id = &[0xff, 0, 0xfe, last][..];
        let first = apply(id).await;
        assert!(is_applied(&first), "{first:?}");
        let again = apply(id).await;
        assert!(matches!(again, Answer::AlreadyThere { .. }), "{again:?}");
    }
    assert_eq!(apply(&[0xff][..]).await, Answer::NotFound);
}

/// A session of PostgreSQL says how it is shown bytes.
pub(crate) async fn bytes_are_one_id_however_they_are_shown<DB: Bed>(fresh: Fresh<DB>) {
    let papers = papers_by_bytes(&fresh).await;
    let pay = ask(Order::Paid, "pay-1");
    let apply = async |shown: &str| {
        let mut tx = DB::begin(&fresh.pool).await;
        let set = format!("SET LOCAL bytea_output = '{shown}'");
        DB::within(&mut tx, &set).await.unwrap();
        let id = [0xff, 0, 0xfe, 1];
        let answer = DB::apply_bytes(&papers, &mut tx, &id, &pay).await.unwrap();
        DB::commit(tx).await.unwrap();
        answer
    };
    let first = apply("escape").await;
    assert!(is_applied(&first), "{first:?}");
    let again = apply("hex").await;
    assert!(matches!(again, Answer::AlreadyThere { .. }), "{again:?}");
    let found = "SELECT count(*) FROM state_event WHERE entity_id = '\\xff00fe01'";
    assert_eq!(DB::numbers(&fresh.pool, found).await, [1]);
}

pub(crate) async fn tables_that_share_a_log_do_not_meet<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    DB::execute(&fresh.pool, &ORDERS.replace("orders", "refunds"))
        .await
        .unwrap();
    DB::execute(&fresh.pool, "INSERT INTO refunds VALUES (1, 1, 1)")
        .await
        .unwrap();
    let pay = ask(Order::Paid, "event-1");
    assert!(is_applied(&apply(&fresh, 1, &pay).await));
    let mut tx = DB::begin(&fresh.pool).await;
    let refunds = Transition::on("refunds");
    let answer = DB::apply(&refunds, &mut tx, 1, &pay).await.unwrap();
    assert!(is_applied(&answer), "{answer:?}");
}

/// Of a shop whose marketplace says in one message that an order is paid and handed over.
pub(crate) async fn machines_on_one_table_do_not_meet<DB: Bed>(fresh: Fresh<DB>) {
    let table = "CREATE TABLE parcels (id BIGINT NOT NULL PRIMARY KEY, \
                 status SMALLINT NOT NULL, ship_status SMALLINT NOT NULL, \
                 bill_status SMALLINT NOT NULL, version INTEGER NOT NULL)";
    DB::execute(&fresh.pool, table).await.unwrap();
    DB::execute(&fresh.pool, "INSERT INTO parcels VALUES (1, 1, 1, 1, 1)")
        .await
        .unwrap();
    let parcels = Transition::<Order>::on("parcels");
    parcels.migrate(&fresh.pool).await.unwrap();
    let machines = [
        parcels.clone().status_column("ship_status"),
        parcels.clone().status_column("bill_status"),
        parcels,
    ];
    let event = ask(Order::Paid, "event-1");
    let deliver = async || {
        let mut answers = Vec::new();
        let mut tx = DB::begin(&fresh.pool).await;
        for machine in &machines {
            answers.push(DB::apply(machine, &mut tx, 1, &event).await.unwrap());
        }
        DB::commit(tx).await.unwrap();
        answers
    };
    let first = deliver().await;
    assert!(first.iter().all(is_applied), "{first:?}");
    let again = deliver().await;
    let is_there = |answer: &Answer<Order>| matches!(answer, Answer::AlreadyThere { .. });
    assert!(again.iter().all(is_there), "{again:?}");
}

pub(crate) async fn names_are_quoted_and_checked<DB: Bed>(fresh: Fresh<DB>) {
    let create = "CREATE TABLE 订单 (nr BIGINT NOT NULL PRIMARY KEY, \
                  state BIGINT NOT NULL, revision BIGINT NOT NULL)";
    DB::execute(&fresh.pool, create).await.unwrap();
    DB::execute(&fresh.pool, "INSERT INTO 订单 VALUES (1, 1, 1)")
        .await
        .unwrap();
    let table = || Transition::<Order>::on("订单");
    // A reserved word is a name like any other.
    let named = || {
        let named = table().id_column("nr").status_column("state");
        named.version_column("revision").log("order")
    };
    named().migrate(&fresh.pool).await.unwrap();
    let pay = ask(Order::Paid, "pay-1");
    let asked = async |orders: Transition<Order>| -> Answered {
        let mut tx = DB::begin(&fresh.pool).await;
        DB::apply(&orders, &mut tx, 1, &pay).await
    };
    assert!(is_applied(&asked(named()).await.unwrap()));

    // SQLite would take a column that is not there for a text, if it stood in `"`.
    let misspelt = asked(named().status_column("stat")).await;
    let is_refused = matches!(
        misspelt,
        Err(TransitionError::Sql(SqlError::Database { .. }))
    );
    assert!(is_refused, "{misspelt:?}");

    let long = "x".repeat(64);
    let bad = [
        "",
        "a.b.c",
        "x; DROP TABLE x",
        "a\"b",
        "a`b",
        "a b",
        "a'",
        ".",
        "a.",
        "a--",
        "?",
        &long,
    ];
    for name in bad {
        let name = || name.to_owned();
        for orders in [
            Transition::on(name()),
            named().log(name()),
            named().id_column(name()),
            named().status_column(name()),
            named().version_column(name()),
        ] {
            let answer = asked(orders).await;
            let is_refused = matches!(answer, Err(TransitionError::InvalidName { .. }));
            assert!(is_refused, "{}: {answer:?}", name());
        }
        let migrated = named().log(name()).migrate(&fresh.pool).await;
        assert!(matches!(migrated, Err(TransitionError::InvalidName { .. })));
    }

    for event in ["", " ", "\t", &"é".repeat(128)] {
        let mut tx = DB::begin(&fresh.pool).await;
        let answer = DB::apply(&named(), &mut tx, 1, &ask(Order::Shipped, event)).await;
        assert!(
            matches!(answer, Err(TransitionError::InvalidId { .. })),
            "{answer:?}"
        );
    }
    let mut tx = DB::begin(&fresh.pool).await;
    let longest = ask(Order::Shipped, &"x".repeat(255));
    let answer = DB::apply(&named(), &mut tx, 1, &longest).await;
    assert!(matches!(answer, Ok(Answer::Illegal { .. })), "{answer:?}");
}

pub(crate) async fn a_row_with_an_unknown_status_is_an_error<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    DB::execute(&fresh.pool, "UPDATE orders SET status = 4")
        .await
        .unwrap();
    let mut tx = DB::begin(&fresh.pool).await;
    let answer = DB::apply(&orders(), &mut tx, 1, &ask(Order::Paid, "pay-1")).await;
    let is_told = matches!(answer, Err(TransitionError::UnknownStatus { code: 4 }));
    assert!(is_told, "{answer:?}");
}

pub(crate) async fn an_id_of_two_rows_is_an_error<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 2).await;
    let by_version = orders().id_column("version");
    let mut tx = DB::begin(&fresh.pool).await;
    let answer = DB::apply(&by_version, &mut tx, 1, &ask(Order::Paid, "pay-1")).await;
    assert!(
        matches!(answer, Err(TransitionError::NotOneRow)),
        "{answer:?}"
    );
}

/// Of a migration that was forgotten, or ran under another name; of other tables nothing is said.
pub(crate) async fn a_log_that_is_missing_is_named_with_the_way_out<DB: Bed>(fresh: Fresh<DB>) {
    with_orders(&fresh, 1).await;
    let elsewhere = || orders().log("event_of_orders");
    let asked = async |orders: Transition<Order>, to| -> Answered {
        let mut tx = DB::begin(&fresh.pool).await;
        DB::apply(&orders, &mut tx, 1, &ask(to, "pay-1")).await
    };
    // One that is allowed, and one that is not.
    for to in [Order::Paid, Order::Shipped] {
        let error = asked(elsewhere(), to).await.unwrap_err();
        assert!(matches!(error, TransitionError::NoLog { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("`event_of_orders`") && text.contains("migrate()"));
        assert!(!error.is_retryable());
    }
    elsewhere().migrate(&fresh.pool).await.unwrap();
    assert!(is_applied(&asked(elsewhere(), Order::Paid).await.unwrap()));

    let nothing = asked(Transition::on("nothing"), Order::Paid).await;
    let is_other = matches!(nothing, Err(TransitionError::Sql(_)));
    assert!(is_other, "{nothing:?}");
}

pub(crate) async fn two_migrations_at_once_make_one_log<DB: Bed>(fresh: Fresh<DB>) {
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let pool = fresh.pool.clone();
        tasks.spawn(async move { orders().migrate(&pool).await });
    }
    for migrated in tasks.join_all().await {
        migrated.unwrap();
    }
    assert_eq!(
        DB::numbers(&fresh.pool, "SELECT count(*) FROM state_event").await,
        [0]
    );
}
