//! Mutants of the statements: of the text literals in the sources of the stores, and of the
//! migrations.

use std::ops::Range;

use crate::mutant::{Edit, Mutant};
use crate::pattern::{Change, numbers, places, swaps};
use crate::wire::Protocol;

struct Source {
    name: &'static str,
    text: &'static str,
    /// Where statements stand in literals; a migration is all statement.
    is_rust: bool,
}

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!("../../idem-core/src/store/sql/", $path))
    };
}

const POSTGRES: [Source; 2] = [
    Source {
        name: "postgres.rs",
        text: source!("postgres.rs"),
        is_rust: true,
    },
    Source {
        name: "postgres_1.sql",
        text: source!("migrations/postgres_1.sql"),
        is_rust: false,
    },
];

const MYSQL: [Source; 3] = [
    Source {
        name: "mysql.rs",
        text: source!("mysql.rs"),
        is_rust: true,
    },
    Source {
        name: "statements.rs",
        text: source!("mysql/statements.rs"),
        is_rust: true,
    },
    Source {
        name: "mysql_1.sql",
        text: source!("migrations/mysql_1.sql"),
        is_rust: false,
    },
];

const SQLITE: [Source; 2] = [
    Source {
        name: "sqlite.rs",
        text: source!("sqlite.rs"),
        is_rust: true,
    },
    Source {
        name: "sqlite_1.sql",
        text: source!("migrations/sqlite_1.sql"),
        is_rust: false,
    },
];

/// Of records in the transaction of their caller.
const WITHIN_POSTGRES: [Source; 2] = [
    Source {
        name: "within/postgres.rs",
        text: source!("within/postgres.rs"),
        is_rust: true,
    },
    Source {
        name: "postgres_2_enter.sql",
        text: source!("migrations/postgres_2_enter.sql"),
        is_rust: false,
    },
];

const WITHIN_MYSQL: [Source; 1] = [Source {
    name: "within/mysql.rs",
    text: source!("within/mysql.rs"),
    is_rust: true,
}];

const WITHIN_SQLITE: [Source; 1] = [Source {
    name: "within/sqlite.rs",
    text: source!("within/sqlite.rs"),
    is_rust: true,
}];

/// Of a transition. They are written for `?`: PostgreSQL is sent numbers instead.
const STATES: [Source; 1] = [Source {
    name: "states/statements.rs",
    text: include_str!("../../idem-core/src/states/statements.rs"),
    is_rust: true,
}];

/// What only SQLite is sent of it.
const STATES_SQLITE: [Source; 2] = [
    Source {
        name: "sql/driver.rs",
        text: include_str!("../../idem-core/src/sql/driver.rs"),
        is_rust: true,
    },
    Source {
        name: "states/log/sqlite.sql",
        text: include_str!("../../idem-core/src/states/log/sqlite.sql"),
        is_rust: false,
    },
];

/// What neither laws nor scenes speak of: the report on the set-up, what an error means, and
/// whether tables are there. `tests/sql` is about these. And of what each database has its own words
/// for, those that SQLite does not hear.
const NOT_HERE: [&str; 8] = [
    "fn check(",
    "fn judge(",
    "fn dirty(",
    "fn class(",
    "fn tables(",
    "mod tests",
    "    sqlx::Postgres,",
    "    sqlx::MySql,",
];

const SWAPS: [(&str, &str, &str); 39] = [
    ("bound", " < ", " <= "),
    ("bound", " <= ", " < "),
    ("bound", " > ", " >= "),
    ("bound", " >= ", " > "),
    ("junction", " AND ", " OR "),
    ("unlocked", " FOR UPDATE", ""),
    ("unlocked", "SELECT pg_advisory_xact_lock(", "SELECT ("),
    ("unlocked", "pg_try_advisory_xact_lock(lock)", "true"),
    ("waiting", " SKIP LOCKED", ""),
    ("conflict", " ON CONFLICT DO NOTHING", ""),
    ("conflict", "status = status", "status = status + 1"),
    ("conflict", "status = status", "record = ''"),
    (
        "unordered",
        " ORDER BY expire_at",
        " ORDER BY expire_at DESC",
    ),
    (
        "unordered",
        " ORDER BY business_key",
        " ORDER BY business_key DESC",
    ),
    (
        "unordered",
        " ORDER BY business_type",
        " ORDER BY business_type DESC",
    ),
    ("null", "IS NOT DISTINCT FROM", "="),
    ("clock", "clock_timestamp()", "now()"),
    ("clock", "transaction_timestamp()", "clock_timestamp()"),
    ("clock", "UTC_TIMESTAMP(6)", "UTC_TIMESTAMP(3)"),
    ("clock", "MICROSECOND", "SECOND"),
    ("isolation", "READ COMMITTED", "REPEATABLE READ"),
    ("isolation", "READ COMMITTED", "SERIALIZABLE"),
    (
        "isolation",
        " IN ('read committed'",
        " NOT IN ('read committed'",
    ),
    ("end", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT"),
    ("end", "ROLLBACK TO SAVEPOINT", "RELEASE SAVEPOINT"),
    ("read-only", "READ ONLY", "READ WRITE"),
    ("end", "COMMIT", "ROLLBACK"),
    ("end", "ROLLBACK", "COMMIT"),
    (
        "patience",
        "innodb_lock_wait_timeout = ",
        "innodb_lock_wait_timeout = 10 * ",
    ),
    ("patience", "lock_timeout = ", "lock_timeout = 10"),
    ("unique", " PRIMARY KEY", ""),
    ("collation", "utf8mb4_bin", "utf8mb4_general_ci"),
    ("collation", "COLLATE BINARY", "COLLATE NOCASE"),
    ("lock", "BEGIN IMMEDIATE", "BEGIN"),
    (
        "lock",
        "UPDATE idempotent_record SET fence = fence WHERE key_hash = x''",
        "SELECT 1 WHERE FALSE",
    ),
    ("conflict", "TEMP TABLE IF NOT EXISTS", "TEMP TABLE"),
    ("deferred", " DEFERRABLE INITIALLY DEFERRED", ""),
    ("unique", "entity_id, event)", "entity_id, event, version)"),
    ("type", "WHEN 'blob'", "WHEN 'text'"),
];

/// What the server of this protocol is to be sent.
pub(crate) fn mutants(protocol: Protocol) -> Vec<Mutant> {
    let sources: &[Source] = match protocol {
        Protocol::Redis => &[],
        Protocol::Postgres => &POSTGRES,
        Protocol::MySql => &MYSQL,
    };
    sources.iter().flat_map(of_source).collect()
}

/// What is sent in the transaction of a caller.
pub(crate) fn within(protocol: Protocol) -> Vec<Mutant> {
    let sources: &[Source] = match protocol {
        Protocol::Redis => &[],
        Protocol::Postgres => &WITHIN_POSTGRES,
        Protocol::MySql => &WITHIN_MYSQL,
    };
    sources.iter().flat_map(of_source).collect()
}

/// What a transition sends.
pub(crate) fn of_states() -> Vec<Mutant> {
    STATES.iter().flat_map(of_source).collect()
}

pub(crate) fn in_sqlite() -> Vec<Mutant> {
    SQLITE.iter().flat_map(of_source).collect()
}

pub(crate) fn within_sqlite() -> Vec<Mutant> {
    WITHIN_SQLITE.iter().flat_map(of_source).collect()
}

pub(crate) fn of_states_in_sqlite() -> Vec<Mutant> {
    let sources = STATES.iter().chain(&STATES_SQLITE);
    sources.flat_map(of_source).collect()
}

fn of_source(source: &Source) -> Vec<Mutant> {
    let fragments = if source.is_rust {
        literals(source.text)
    } else {
        let lines = (1..).zip(source.text.lines());
        let statements = lines.filter(|(_, line)| !line.starts_with("--"));
        // What is filled in is not sent as it stands here.
        let pieces = statements.flat_map(|(line, text)| {
            let pieces = text.split("{log}").map(str::to_owned);
            pieces.map(move |piece| (line, piece))
        });
        pieces.collect()
    };
    let mutants = fragments.iter().flat_map(|(line, fragment)| {
        let changes = changes(fragment).into_iter();
        changes.map(|change| mutant(source.name, *line, fragment, &change))
    });
    mutants.collect()
}

fn mutant(file: &'static str, line: usize, fragment: &str, change: &Change) -> Mutant {
    let changed = change.of(fragment);
    Mutant {
        file,
        line,
        column: change.range.start + 1,
        operator: change.operator,
        before: fragment.trim().to_owned(),
        after: changed.trim().to_owned(),
        edit: Edit {
            from: fragment.to_owned(),
            to: changed,
        },
    }
}

fn changes(fragment: &str) -> Vec<Change> {
    let mut changes = swaps(fragment, &SWAPS);
    // `COMMITTED` is no `COMMIT`.
    changes.retain(|change| {
        let (word, behind) = fragment[change.range.start..].split_at(change.range.len());
        !(word.ends_with(char::is_alphabetic) && behind.starts_with(char::is_alphabetic))
    });
    changes.extend(numbers(fragment));
    changes.extend(comparisons(fragment));
    changes
}

/// `column = $1`: as a condition that no longer holds back, or an assignment that changes nothing.
/// The parameter stays in the text, for the client sends it.
fn comparisons(fragment: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    for sign in [" = ", " <= ", " IS NOT DISTINCT FROM "] {
        for found in places(fragment, sign) {
            let Some(range) = around(fragment, &found) else {
                continue;
            };
            let before = fragment[..range.start].trim_end();
            let is_condition = ["WHERE", "AND", "ON"]
                .iter()
                .any(|word| before.ends_with(word));
            let all = &fragment[range.clone()];
            let (column, parameter) = (
                &fragment[range.start..found.start],
                &fragment[found.end..range.end],
            );
            changes.push(if is_condition {
                Change::new("unconditional", range.clone(), format!("({all} OR TRUE)"))
            } else {
                let kept = format!("{column} = CASE WHEN TRUE THEN {column} ELSE {parameter} END");
                Change::new("unassigned", range.clone(), kept)
            });
        }
    }
    changes
}

/// The column before a sign and the parameter behind it.
fn around(fragment: &str, sign: &Range<usize>) -> Option<Range<usize>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let column = fragment[..sign.start]
        .rfind(|c| !is_word(c))
        .map_or(0, |at| at + 1);
    let behind = &fragment[sign.end..];
    let is_parameter = behind.starts_with(['$', '?']);
    let length = behind[1.min(behind.len())..].find(|c: char| !c.is_ascii_digit());
    let end = length.map_or(fragment.len(), |length| sign.end + 1 + length);
    (is_parameter && column < sign.start).then_some(column..end)
}

/// What stands in the text literals of a Rust source, line by line and without what a format
/// fills in, as it is sent.
fn literals(source: &str) -> Vec<(usize, String)> {
    let mut fragments = Vec::new();
    let mut is_inside = false;
    let mut skipped_until = None;
    for (number, line) in (1..).zip(source.lines()) {
        let indent = &line[..line.len() - line.trim_start().len()];
        if skipped_until.is_none() && NOT_HERE.iter().any(|name| line.contains(name)) {
            skipped_until = Some(format!("{indent}}}"));
        }
        if let Some(end) = &skipped_until {
            if line == end {
                skipped_until = None;
            }
            continue;
        }
        if !is_inside && line.trim_start().starts_with("//") {
            continue;
        }
        for fragment in literals_of(line, &mut is_inside) {
            fragments.push((number, fragment));
        }
    }
    fragments
}

/// Follows literals over the end of a line that ends with a backslash.
fn literals_of(line: &str, is_inside: &mut bool) -> Vec<String> {
    let text = if *is_inside { line.trim_start() } else { line };
    let mut found = Vec::new();
    let mut fragment = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => {
                *is_inside = !*is_inside;
                found.push(std::mem::take(&mut fragment));
            }
            '\\' if *is_inside => fragment.extend(characters.next()),
            // A format fills it in.
            '{' if *is_inside => {
                characters.by_ref().find(|c| *c == '}');
                found.push(std::mem::take(&mut fragment));
            }
            c if *is_inside => fragment.push(c),
            _ => {}
        }
    }
    found.push(fragment);
    // Neither is the code of an error a statement.
    found.retain(|fragment| !fragment.trim().bytes().all(|byte| byte.is_ascii_digit()));
    found
}
