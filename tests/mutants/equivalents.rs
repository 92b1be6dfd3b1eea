//! Mutants that do what the original does, or harm nobody, each with its reason.

use crate::mutant::Mutant;

/// A file, a line of it and what the mutant makes of that line.
type Line = (&'static str, &'static str, &'static str);

/// By reason.
const EQUIVALENTS: &[(&str, &[Line])] = &[
    (
        "a record with another status has no marks: whoever asks for them has asked for the status",
        &[("record.lua", "local marks = 0", "local marks = 1")],
    ),
    (
        "a doubt comes only with a takeover: its bit is never the only one",
        &[(
            "settle.lua",
            "local is_unused = outcome == 4 or outcome == 6 or outcome == 8 and marks % 8 < 4",
            "local is_unused = outcome == 4 or outcome == 6 or outcome == 8 and marks % 8 <= 4",
        )],
    ),
    (
        "a third value is not assigned",
        &[(
            "record.lua",
            "version, head = string.byte(raw, 1, 2)",
            "version, head = string.byte(raw, 1, 3)",
        )],
    ),
    (
        "the status 15 is none: such a record is damaged either way",
        &[
            (
                "record.lua",
                "if head % 32 > 15 then",
                "if head % 32 >= 15 then",
            ),
            (
                "record.lua",
                "if head % 64 > 31 then",
                "if head % 64 >= 31 then",
            ),
            (
                "record.lua",
                "if head % 128 > 63 then",
                "if head % 128 >= 63 then",
            ),
            (
                "claim.lua",
                "if status == 1 or status == 2 and head > 127 then",
                "if status == 1 or status == 2 and head >= 127 then",
            ),
            (
                "record.lua",
                "damaged = rest ~= 21 or head > 127 or marks > 63",
                "damaged = rest ~= 21 or head >= 127 or marks > 63",
            ),
        ],
    ),
    (
        "an attempt in progress has no payload: with that flag it is damaged either way",
        &[
            (
                "record.lua",
                "if head % 128 > 63 then",
                "if head % 129 > 63 then",
            ),
            (
                "record.lua",
                "damaged = rest < 7 or rest > 7 and head < 128",
                "damaged = rest < 7 or rest > 7 and head <= 128",
            ),
            (
                "record.lua",
                "damaged = rest < 7 or rest > 7 and head < 128",
                "damaged = rest < 7 or rest > 7 and head < 129",
            ),
            (
                "claim.lua",
                "if status == 1 or status == 2 and head > 127 then",
                "if status == 1 or status == 2 and head > 128 then",
            ),
            ("claim.lua", "if head < 128 then", "if head <= 128 then"),
            ("claim.lua", "if head < 128 then", "if head < 129 then"),
        ],
    ),
    (
        "any number beyond the marks says that there are none",
        &[(
            "record.lua",
            "marks = string.byte(raw, state_at) or 64",
            "marks = string.byte(raw, state_at) or 65",
        )],
    ),
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
                "WHERE expire_at <= $1 ORDER BY expire_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
                "WHERE expire_at < $1 ORDER BY expire_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
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
        ],
    ),
    (
        "nothing stands behind the last part of an argument",
        &[(
            "claim.lua",
            "my_subject = string.sub(ARGV[1], at, at + 15)",
            "my_subject = string.sub(ARGV[1], at, at + 16)",
        )],
    ),
    (
        "the time is larger than any fence of a key that has none",
        &[(
            "claim.lua",
            "local fence, attempt = 0, 0",
            "local fence, attempt = 1, 0",
        )],
    ),
    (
        "the marks are odd there, and 32 is even",
        &[
            (
                "claim.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 33 and doubt > keep then",
            ),
            (
                "claim.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks <= 32 and doubt > keep then",
            ),
            (
                "renew.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks <= 32 and doubt > keep then",
            ),
            (
                "renew.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 33 and doubt > keep then",
            ),
            (
                "settle.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks <= 32 and doubt > keep then",
            ),
            (
                "settle.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 33 and doubt > keep then",
            ),
        ],
    ),
    (
        "the larger of two equal numbers is either",
        &[
            (
                "claim.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 32 and doubt >= keep then",
            ),
            (
                "renew.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 32 and doubt >= keep then",
            ),
            (
                "settle.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 32 and doubt >= keep then",
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
        "of what was read, only what begins with the prefix is shown",
        &[
            (
                "postgres.rs",
                "($1, $2) AND (business_type, business_key) < ($3, $4)",
                "($1, $2) AND (business_type, business_key) <= ($3, $4)",
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
            // Rows are told apart by their hash.
            (
                "mysql_1.sql",
                "business_type VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,",
                "business_type VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,",
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
        "nothing was written that could be kept",
        &[("postgres.rs", "ROLLBACK", "COMMIT")],
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
        "the outcome 3 leaves a mark and does not come here",
        &[(
            "settle.lua",
            "local my_head = head % 64 + (outcome < 3 and 1 or 2) + (kept and 64 or 0) + (has_payload and 128 or 0)",
            "local my_head = head % 64 + (outcome <= 3 and 1 or 2) + (kept and 64 or 0) + (has_payload and 128 or 0)",
        )],
    ),
    (
        "a fence is the time, unless a key changes twice in a microsecond; then it still grows",
        &[
            (
                "refuse.lua",
                "local value = struct.pack('>BBI4I7c16', 1, my_head, 0, math.max(fence + 1, now), nobody)",
                "local value = struct.pack('>BBI4I7c16', 1, my_head, 0, math.max(fence + 2, now), nobody)",
            ),
            (
                "claim.lua",
                "fence = math.max(fence + 1, now)",
                "fence = math.max(fence + 2, now)",
            ),
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
        ],
    ),
    (
        "nobody owns a refused record",
        &[(
            "claim.lua",
            "if status ~= 1 and status ~= 3 then",
            "if status ~= 1 and status ~= 4 then",
        )],
    ),
    (
        "what is told on Redis 6.2 is told as exactly on a later one",
        &[(
            "expiry.lua",
            "if type(last) == 'number' then",
            "if false then",
        )],
    ),
    (
        "the second of two guards: a migration takes a lock first",
        &[(
            "postgres_1.sql",
            "CREATE TABLE idempotent_record_version (version BIGINT NOT NULL PRIMARY KEY);",
            "CREATE TABLE idempotent_record_version (version BIGINT NOT NULL);",
        )],
    ),
];

/// Why it may survive.
pub(crate) fn reason(mutant: &Mutant) -> Option<&'static str> {
    let is_it = |line: &Line| *line == (mutant.file, &*mutant.before, &*mutant.after);
    let found = EQUIVALENTS
        .iter()
        .find(|(_, lines)| lines.iter().any(is_it));
    found.map(|(reason, _)| *reason)
}

/// Entries that speak of a mutant that is not there any more.
pub(crate) fn stale(mutants: &[Mutant]) -> Vec<Line> {
    let is_there = |line: &Line| {
        let is_it = |mutant: &Mutant| *line == (mutant.file, &*mutant.before, &*mutant.after);
        mutants.iter().any(is_it)
    };
    let lines = EQUIVALENTS.iter().flat_map(|(_, lines)| *lines);
    lines.copied().filter(|line| !is_there(line)).collect()
}
