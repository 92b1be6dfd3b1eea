//! Mutants that do something else, which no test here can see, each with the reason why it is let live.

use crate::known::Reason;

/// By reason.
pub(crate) const SURVIVORS: &[Reason] = &[
    (
        "one differs from the other in a single microsecond",
        &[
            (
                "record.lua",
                "if kept and not damaged and not is_closed and struct.unpack('>I7', kept) <= now then",
                "if kept and not damaged and not is_closed and struct.unpack('>I7', kept) < now then",
            ),
            (
                "claim.lua",
                "if now > not_after then",
                "if now >= not_after then",
            ),
            (
                "postgres.rs",
                "WHERE expire_at <= $1 ORDER BY expire_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
                "WHERE expire_at < $1 ORDER BY expire_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
            ),
            (
                "statements.rs",
                "SELECT key_hash FROM idempotent_record WHERE expire_at <= ?",
                "SELECT key_hash FROM idempotent_record WHERE expire_at < ?",
            ),
            (
                "renew.lua",
                "if now > not_after then",
                "if now >= not_after then",
            ),
            (
                "settle.lua",
                "if now > not_after then",
                "if now >= not_after then",
            ),
            (
                "issue.lua",
                "if now > not_after then",
                "if now >= not_after then",
            ),
            (
                "refuse.lua",
                "if now > not_after then",
                "if now >= not_after then",
            ),
            (
                "settle.lua",
                "local hands_back = token and is_unused and struct.unpack('>I7', token, 17) > now",
                "local hands_back = token and is_unused and struct.unpack('>I7', token, 17) >= now",
            ),
            (
                "claim.lua",
                "if not_after - limit * 1000 < fence and fence <= now then",
                "if not_after - limit * 1000 <= fence and fence <= now then",
            ),
            (
                "claim.lua",
                "if not_after - limit * 1000 < fence and fence <= now then",
                "if not_after - limit * 1000 < fence and fence < now then",
            ),
            (
                "claim.lua",
                "if struct.unpack('>I7', raw, state_at + 8) > now then",
                "if struct.unpack('>I7', raw, state_at + 8) >= now then",
            ),
            (
                "refuse.lua",
                "elseif status == 0 and struct.unpack('>I7', raw, state_at + 8) > now then",
                "elseif status == 0 and struct.unpack('>I7', raw, state_at + 8) >= now then",
            ),
            (
                "forget.lua",
                "or status == 0 and force == 0 and struct.unpack('>I7', raw, state_at + 8) > now",
                "or status == 0 and force == 0 and struct.unpack('>I7', raw, state_at + 8) >= now",
            ),
            (
                "resolve.lua",
                "if lease_until > now and force == 0 then",
                "if lease_until >= now and force == 0 then",
            ),
            (
                "renew.lua",
                "if flags % 2 > 0 or marks % 2 == 0 or age >= keep * 1000 then",
                "if flags % 2 > 0 or marks % 2 == 0 or age > keep * 1000 then",
            ),
            (
                "settle.lua",
                "if outcome > 2 or age >= keep * 1000 then",
                "if outcome > 2 or age > keep * 1000 then",
            ),
        ],
    ),
    (
        "the second of two guards: the row was locked before it was read. A transaction that asks for no lock of ours and changes the row between two statements needs both",
        &[
            (
                "postgres.rs",
                "WHERE key_hash = $12 AND record = $13 AND expire_at = $14",
                "WHERE key_hash = $12 AND (record = $13 OR TRUE) AND expire_at = $14",
            ),
            (
                "postgres.rs",
                "WHERE key_hash = $12 AND record = $13 AND expire_at = $14",
                "WHERE key_hash = $12 AND record = $13 AND (expire_at = $14 OR TRUE)",
            ),
            (
                "postgres.rs",
                "AND response_data IS NOT DISTINCT FROM $15",
                "AND (response_data IS NOT DISTINCT FROM $15 OR TRUE)",
            ),
            (
                "postgres.rs",
                "WHERE key_hash = $1 AND record = $2 AND expire_at = $3",
                "WHERE key_hash = $1 AND (record = $2 OR TRUE) AND expire_at = $3",
            ),
            (
                "postgres.rs",
                "WHERE key_hash = $1 AND record = $2 AND expire_at = $3",
                "WHERE key_hash = $1 AND record = $2 AND (expire_at = $3 OR TRUE)",
            ),
            (
                "postgres.rs",
                "AND response_data IS NOT DISTINCT FROM $4 RETURNING true",
                "AND (response_data IS NOT DISTINCT FROM $4 OR TRUE) RETURNING true",
            ),
        ],
    ),
    (
        "a stricter isolation says no to more, and the call is repeated",
        &[
            (
                "postgres.rs",
                "BEGIN ISOLATION LEVEL READ COMMITTED;",
                "BEGIN ISOLATION LEVEL REPEATABLE READ;",
            ),
            (
                "postgres.rs",
                "BEGIN ISOLATION LEVEL READ COMMITTED;",
                "BEGIN ISOLATION LEVEL SERIALIZABLE;",
            ),
            (
                "statements.rs",
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;",
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;",
            ),
            (
                "statements.rs",
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;",
                "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;",
            ),
        ],
    ),
    (
        "a coarser clock is one",
        &[(
            "statements.rs",
            "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))",
            "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(3))",
        )],
    ),
    (
        "the second of two guards: a migration takes a lock first",
        &[
            (
                "postgres_1.sql",
                "CREATE TABLE idempotent_record_version (version BIGINT NOT NULL PRIMARY KEY);",
                "CREATE TABLE idempotent_record_version (version BIGINT NOT NULL);",
            ),
            (
                "mysql_1.sql",
                "version BIGINT NOT NULL PRIMARY KEY",
                "version BIGINT NOT NULL",
            ),
        ],
    ),
    (
        "one differs from the other in a thousandth of the retention, and only for a record that was lost",
        &[
            (
                "renew.lua",
                "if flags % 2 > 0 or marks % 2 == 0 or age >= keep * 1000 then",
                "if flags % 2 > 0 or marks % 2 == 0 or age >= keep * 1001 then",
            ),
            (
                "settle.lua",
                "if outcome > 2 or age >= keep * 1000 then",
                "if outcome > 2 or age >= keep * 1001 then",
            ),
        ],
    ),
    (
        "seen only by sessions without `autocommit`, of which tests/sql has some",
        &[(
            "mysql.rs",
            "COMMIT; DO RELEASE_LOCK(MD5(CONCAT(DATABASE(), '.idempotent_record')))",
            "ROLLBACK; DO RELEASE_LOCK(MD5(CONCAT(DATABASE(), '.idempotent_record')))",
        )],
    ),
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
];
