//! Mutants that do something else, which no test here can see, each with the reason why it is let live.

use crate::known::Reason;

/// By reason.
pub(crate) const SURVIVORS: &[Reason] = &[
    (
        "sqlx has rolled back, and the statement behind it fails: nothing is there that could be kept",
        &[
            (
                "within/mysql.rs",
                "ROLLBACK; START TRANSACTION READ ONLY",
                "COMMIT; START TRANSACTION READ ONLY",
            ),
            ("within/postgres.rs", "BEGIN READ ONLY", "BEGIN READ WRITE"),
        ],
    ),
    (
        "one differs from the other in a single microsecond of the machine's clock",
        &[(
            "sqlite.rs",
            "(SELECT key_hash FROM idempotent_record WHERE expire_at <= ?1 ORDER BY expire_at LIMIT ?2)",
            "(SELECT key_hash FROM idempotent_record WHERE expire_at < ?1 ORDER BY expire_at LIMIT ?2)",
        )],
    ),
    (
        "the second of two guards: the file was taken before the log was read. Somebody who writes in the log by hand needs both",
        &[(
            "sql/driver.rs",
            "ON CONFLICT DO NOTHING RETURNING version",
            "RETURNING version",
        )],
    ),
];
