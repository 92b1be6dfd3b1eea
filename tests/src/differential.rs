//! Long random histories, on a store and on the specification at once.

use std::sync::Arc;
use std::time::Instant;

use idem_core::conformance::{Course, Harness, Report, differential};

use crate::long;

/// Runs a random history on `store`, which is called so in the campaign's figures.
///
/// # Panics
/// If the store differs from the specification, or did less than it should.
pub async fn random<H: Harness>(store: &str, harness: H, course: Course) -> Report {
    let (begin, seed, operations) = (Instant::now(), course.seed, course.operations);
    let report = differential(&Arc::new(harness), course).await;
    println!("{report}");
    assert_eq!(report.operations, operations);
    long::report(
        "differential",
        format_args!(
            "{store}: {operations} operations as specified, {} of them across a deadline, \
             IDEM_SEED={seed}, in {:.0?}",
            report.near_deadline,
            begin.elapsed()
        ),
    );
    report
}
