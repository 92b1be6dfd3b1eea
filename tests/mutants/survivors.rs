//! Mutants that do something else, which no test here can see, each with the reason why it is let live.

use crate::known::Reason;

/// By reason.
pub(crate) const SURVIVORS: &[Reason] = &[(
    "sqlx has rolled back, and the statement behind it fails: nothing is there that could be kept",
    &[
        (
            "within/mysql.rs",
            "ROLLBACK; START TRANSACTION READ ONLY",
            "COMMIT; START TRANSACTION READ ONLY",
        ),
        ("within/postgres.rs", "BEGIN READ ONLY", "BEGIN READ WRITE"),
    ],
)];
