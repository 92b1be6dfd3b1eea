//! Long random histories.

use std::time::Duration;

use idem_core::conformance::{Course, Harness};
use idem_tests::differential;

/// Operations where the statements are those of a longer history.
pub(crate) const AT_ANOTHER_LEVEL: usize = 6_000;

/// Each answer is the specification's. Nothing may be near its deadline: these stores expire to the
/// microsecond.
pub(crate) async fn is_the_specification<H: Harness>(store: &str, harness: H, operations: usize) {
    let course = Course {
        lanes: 32,
        pace: Duration::from_millis(60),
        ..Course::of(operations)
    };
    let report = differential::random(store, harness, course).await;
    assert_eq!(report.near_deadline, 0);
}
