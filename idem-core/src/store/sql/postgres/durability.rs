//! What a server's settings can lose.

use crate::store::Finding;

pub(super) fn judge(
    synchronous: &str,
    fsync: &str,
    is_copied_late: bool,
    is_unlogged: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |is_found: bool, code, detail: String| {
        if is_found {
            findings.push(Finding { code, detail });
        }
    };
    find(
        synchronous == "off",
        "not_durable",
        "synchronous_commit is off: a crash loses the last records, and what they guarded runs again; set it to on for this user".into(),
    );
    find(
        fsync == "off",
        "no_fsync",
        "fsync is off: a power failure can lose all records; set it to on".into(),
    );
    find(
        is_unlogged,
        "no_persistence",
        "the table is unlogged or temporary: a crash empties it; ALTER TABLE idempotent_record SET LOGGED".into(),
    );
    find(
        is_copied_late,
        "asynchronous_replicas",
        "standbys get records a little later: a fail-over can lose the last ones, and what they guarded runs again; name them in synchronous_standby_names".into(),
    );
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_up_is_judged_by_what_it_can_lose() {
        let codes = |findings: Vec<Finding>| -> Vec<&str> {
            findings.into_iter().map(|finding| finding.code).collect()
        };
        assert!(codes(judge("on", "on", false, false)).is_empty());
        assert_eq!(
            codes(judge("off", "off", false, true)),
            ["not_durable", "no_fsync", "no_persistence"]
        );
        assert_eq!(
            codes(judge("on", "on", true, false)),
            ["asynchronous_replicas"]
        );
    }
}
