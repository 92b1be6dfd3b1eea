//! Limits that are longer than a database can count.

use std::time::Duration;

use crate::attempt::{TERMS, finish, key};
use crate::{mysql, postgres};

/// More milliseconds than fit into 31 bits, more seconds than that, and more than a clock has.
const LONG: [Duration; 3] = [
    Duration::from_hours(60 * 24),
    Duration::from_hours(200 * 365 * 24),
    Duration::MAX,
];

#[tokio::test]
async fn postgres_takes_a_limit_that_it_can_not_count() {
    let (_, store) = postgres::database().await;
    for (number, limit) in (1..).zip(LONG) {
        let store = store.clone().limit(limit);
        finish(&store, &key("order", &number.to_string()), number, TERMS).await;
        assert_eq!(store.purge(10).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn mariadb_takes_a_limit_that_it_can_not_count() {
    let (_, store) = mysql::database().await;
    for (number, limit) in (1..).zip(LONG) {
        let store = store.clone().limit(limit);
        finish(&store, &key("order", &number.to_string()), number, TERMS).await;
        assert_eq!(store.purge(10).await.unwrap(), 0);
    }
}
