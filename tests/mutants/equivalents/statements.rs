//! Of the statements.

use crate::known::Reason;

/// By reason.
pub(crate) const STATEMENTS: &[Reason] = &[
    (
        "of what was read, only what begins with the prefix is shown",
        &[
            (
                "postgres.rs",
                "($1, $2) AND (business_type, business_key) < ($3, $4)",
                "($1, $2) AND (business_type, business_key) <= ($3, $4)",
            ),
            (
                "sqlite.rs",
                "(?2, ?3) AND (business_type, business_key) < (?4, ?5)",
                "(?2, ?3) AND (business_type, business_key) <= (?4, ?5)",
            ),
            (
                "statements.rs",
                "? AND business_key < ? ORDER BY business_key LIMIT ?",
                "? AND business_key <= ? ORDER BY business_key LIMIT ?",
            ),
            (
                "statements.rs",
                "FROM idempotent_record WHERE business_type > ? AND business_type < ?",
                "FROM idempotent_record WHERE business_type > ? AND business_type <= ?",
            ),
        ],
    ),
    (
        "the number of a lock may be any, and a longer wait is one",
        &[
            (
                "postgres.rs",
                "SELECT pg_advisory_xact_lock(1768187245)",
                "SELECT pg_advisory_xact_lock(1768187246)",
            ),
            (
                "statements.rs",
                "SELECT GET_LOCK(MD5(CONCAT(DATABASE(), '.idempotent_record')), 600)",
                "SELECT GET_LOCK(MD5(CONCAT(DATABASE(), '.idempotent_record')), 601)",
            ),
        ],
    ),
    (
        "one statement that reads sees what is committed when it begins, at any level but the lowest",
        &[
            (
                "statements.rs",
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ ONLY",
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION READ ONLY",
            ),
            (
                "statements.rs",
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ ONLY",
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ WRITE",
            ),
        ],
    ),
    (
        "nothing was written that could be kept",
        &[
            ("postgres.rs", "ROLLBACK", "COMMIT"),
            ("mysql.rs", "COMMIT", "ROLLBACK"),
            ("mysql.rs", "; COMMIT", "; ROLLBACK"),
        ],
    ),
    (
        "a wider column holds what fits into the narrower one",
        &[
            (
                "mysql_1.sql",
                "request_id    VARBINARY(16) NOT NULL,",
                "request_id    VARBINARY(17) NOT NULL,",
            ),
            (
                "mysql_1.sql",
                "record        VARBINARY(255) NOT NULL,",
                "record        VARBINARY(256) NOT NULL,",
            ),
            (
                "postgres_1.sql",
                "business_key  VARCHAR(200) COLLATE \"C\" NOT NULL,",
                "business_key  VARCHAR(201) COLLATE \"C\" NOT NULL,",
            ),
            (
                "mysql_1.sql",
                "business_key  VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,",
                "business_key  VARCHAR(201) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,",
            ),
            (
                "postgres_1.sql",
                "business_type VARCHAR(200) COLLATE \"C\" NOT NULL,",
                "business_type VARCHAR(201) COLLATE \"C\" NOT NULL,",
            ),
            (
                "mysql_1.sql",
                "business_type VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,",
                "business_type VARCHAR(201) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,",
            ),
            (
                "mysql_1.sql",
                "fingerprint   VARBINARY(16),",
                "fingerprint   VARBINARY(17),",
            ),
        ],
    ),
    (
        "either fails for want of that savepoint",
        &[(
            "within/postgres.rs",
            "RELEASE SAVEPOINT idem_transaction_was_given_up",
            "ROLLBACK TO SAVEPOINT idem_transaction_was_given_up",
        )],
    ),
    (
        "of the rows that come, the first is read",
        &[(
            "states/statements.rs",
            "WHERE entity = ? AND entity_id = ? AND to_status = ? LIMIT 1",
            "WHERE entity = ? AND entity_id = ? AND to_status = ? LIMIT 2",
        )],
    ),
    (
        "an empty row is filled or taken back in the transaction that made it",
        &[
            (
                "statements.rs",
                "', x'', 0, 0, 0, FALSE, 0, x'', 0, 0)",
                "', x'', 1, 0, 0, FALSE, 0, x'', 0, 0)",
            ),
            (
                "statements.rs",
                "', x'', 0, 0, 0, FALSE, 0, x'', 0, 0)",
                "', x'', 0, 1, 0, FALSE, 0, x'', 0, 0)",
            ),
            (
                "statements.rs",
                "', x'', 0, 0, 0, FALSE, 0, x'', 0, 0)",
                "', x'', 0, 0, 1, FALSE, 0, x'', 0, 0)",
            ),
            (
                "statements.rs",
                "', x'', 0, 0, 0, FALSE, 0, x'', 0, 0)",
                "', x'', 0, 0, 0, FALSE, 1, x'', 0, 0)",
            ),
            (
                "statements.rs",
                "', x'', 0, 0, 0, FALSE, 0, x'', 0, 0)",
                "', x'', 0, 0, 0, FALSE, 0, x'', 0, 1)",
            ),
        ],
    ),
    (
        "only whether there is a row is asked",
        &[(
            "postgres.rs",
            "SELECT 1 FROM idempotent_record WHERE key_hash =",
            "SELECT 2 FROM idempotent_record WHERE key_hash =",
        )],
    ),
    (
        "rows are told apart by their hash",
        &[(
            "mysql_1.sql",
            "business_type VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,",
            "business_type VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,",
        )],
    ),
    (
        "that it may write is what counts: it writes no row, or as it is",
        &[
            (
                "sql/driver.rs",
                "SET version = version WHERE 1 = 0",
                "SET version = version WHERE 2 = 0",
            ),
            (
                "sql/driver.rs",
                "SET version = version WHERE 1 = 0",
                "SET version = version WHERE 1 = 1",
            ),
        ],
    ),
    (
        "no row has such a number",
        &[(
            "within/sqlite.rs",
            "INSERT INTO temp.idem_transaction_was_lost VALUES (NULL, -1)",
            "INSERT INTO temp.idem_transaction_was_lost VALUES (NULL, -2)",
        )],
    ),
];
