//! What an error means, by its code.

use super::super::fault::Class;

/// By the classes and codes of appendix A of the manual.
pub(super) fn class(code: &str) -> Class {
    match code {
        // A snapshot that is too old for what it would have to show.
        "72000" => Class::Conflict,
        // Nobody knows whether it was done.
        "40003" => Class::Unavailable,
        // The transaction was idle, or open, for too long, and its session is ended.
        "25P03" | "25P04" => Class::Overslept,
        "40P01" => Class::Deadlock,
        "55P03" => Class::Locked,
        // By `statement_timeout`, or by somebody.
        "57014" => Class::Stopped,
        // A read-only transaction: a standby, or a primary that is being demoted.
        "25006" => Class::ReadOnly,
        // No such schema, table, column or function; no such right.
        "3F000" | "42P01" | "42703" | "42883" | "42501" => Class::Misconfigured,
        "3D000" => Class::NotLetIn,
        // No such prepared statement, or one of that name already.
        "26000" | "42P05" => Class::Unprepared,
        _ => match code.get(..2) {
            Some("28") => Class::NotLetIn,
            // The transaction was rolled back: a serialisation failure, say.
            Some("40") => Class::Conflict,
            // Out of memory (also of all sessions' locks), disk or connections.
            Some("53") => Class::Refused,
            // Connection trouble; shut down or starting; trouble of the system.
            Some("08" | "57" | "58") => Class::Unavailable,
            _ => Class::Protocol,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_apart_by_their_code() {
        let expected = [
            ("40001", Class::Conflict),
            ("40P01", Class::Deadlock),
            ("40000", Class::Conflict),
            ("40003", Class::Unavailable),
            ("72000", Class::Conflict),
            ("25P03", Class::Overslept),
            ("25P04", Class::Overslept),
            ("25006", Class::ReadOnly),
            ("53200", Class::Refused),
            ("55P03", Class::Locked),
            ("57014", Class::Stopped),
            ("57P01", Class::Unavailable),
            ("53300", Class::Refused),
            ("42P01", Class::Misconfigured),
            ("42883", Class::Misconfigured),
            ("28P01", Class::NotLetIn),
            ("3D000", Class::NotLetIn),
            ("26000", Class::Unprepared),
            // A transaction that its body has spoilt; a record that can not be read.
            ("25P02", Class::Protocol),
            ("XX001", Class::Protocol),
            ("22001", Class::Protocol),
            ("", Class::Protocol),
        ];
        for (code, expected) in expected {
            assert_eq!(class(code), expected, "{code}");
        }
    }
}
