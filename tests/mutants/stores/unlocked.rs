//! PostgreSQL: a row that somebody inserts behind our lock, and changes before our write.

use idem_core::conformance::Harness;
use idem_core::record::{Forget, OperatorReply, Slot, Status};
use idem_core::store::Store;
use idem_tests::attempt::{TERMS, finish, key};
use idem_tests::database::{Aside, Database, OnPostgres};

use crate::relay::Relay;

/// A success, which a forget replaces by a mark, or a damaged row, which it deletes: what it writes,
/// what stands in the row that it reads, and what in the one that is there when it writes.
const CASES: [(&str, Status, &str, &str); 6] = [
    (UPDATE, Status::Success, "fence = fence", "record = '\\xff'"),
    (UPDATE, Status::Success, "fence = fence", "expire_at = 1"),
    (
        UPDATE,
        Status::Success,
        "fence = fence",
        "response_data = NULL",
    ),
    (
        DELETE,
        Status::Damaged,
        "record = '\\xff'",
        "record = (SELECT record FROM unlocked)",
    ),
    (DELETE, Status::Damaged, "record = '\\xff'", "expire_at = 1"),
    (
        DELETE,
        Status::Damaged,
        "response_data = NULL",
        "response_data = (SELECT response_data FROM unlocked)",
    ),
];

const UPDATE: &str = "UPDATE idempotent_record SET";
const DELETE: &str = "DELETE FROM idempotent_record WHERE key_hash";

/// What was read is not there any more, so there is nothing to be forgotten.
pub(super) async fn a_row_that_changes_between_two_statements_stays(
    database: &OnPostgres,
    relay: &Relay,
) {
    let key = key("unlocked", "1");
    let store = database.fresh_store().await;
    finish(&store, &key, 1, TERMS).await;
    let Slot::Record(record) = store.peek(&key).await.unwrap().reply else {
        panic!("there was a record");
    };
    let ours = "idempotent_record WHERE business_type = 'shop:unlocked'";
    let mut other = database.aside().await;
    other.run("DROP TABLE IF EXISTS unlocked").await;
    let copy = format!("CREATE TABLE unlocked AS SELECT * FROM {ours}");
    other.run(&copy).await;
    for (write, status, found, changed) in CASES {
        other.run(&format!("DELETE FROM {ours}")).await;
        let change = |set| {
            format!("UPDATE idempotent_record SET {set} WHERE business_type = 'shop:unlocked'")
        };
        let insert = format!(
            "INSERT INTO idempotent_record SELECT * FROM unlocked; {}",
            change(found)
        );
        // One that has not prepared its statements yet.
        let store = database.fresh_store().await;
        let forget = Forget {
            fence: record.fence,
            status,
            release: false,
            force: true,
        };
        let mut reads = relay.hold("LEFT JOIN idempotent_record");
        let (answer, ()) = tokio::join!(store.forget(&key, &forget), async {
            reads.reached().await;
            other.run(&insert).await;
            let mut writes = relay.hold(write);
            reads.open();
            writes.reached().await;
            other.run(&change(changed)).await;
            writes.open();
        });
        assert_eq!(answer.unwrap().reply, OperatorReply::Changed, "{changed}");
        let left = format!("SELECT count(*) FROM {ours} AND status = 1");
        assert_eq!(other.count(&left).await, 1, "{changed}");
    }
}
