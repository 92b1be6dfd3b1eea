//! What an error means, by its number.

use super::super::fault::Class;

/// By the lists of MySQL and MariaDB. The SQLSTATE of a lock time-out and of much else is only `HY000`.
pub(super) fn class(number: u16) -> Class {
    match number {
        // ER_LOCK_DEADLOCK; Galera also says so at a commit that it rolls back.
        1213 => Class::Deadlock,
        // ER_CHECKREAD, by which MariaDB says what others call 40001; what Group Replication rolls back
        // at its commit. A table that was changed, a statement that has to be prepared anew, a wait that
        // was broken off for such a change. A transaction that somebody left open on the connection,
        // and that is rolled back by now.
        1020 | 3101 | 1412 | 1615 | 1689 | 1568 => Class::Conflict,
        // ER_LOCK_WAIT_TIMEOUT
        1205 => Class::Locked,
        // Interrupted; took too long, to MySQL, to MariaDB.
        1317 | 3024 | 1969 => Class::Stopped,
        // An option, a transaction, a mode, the engine.
        1290 | 1792 | 1836 | 1874 => Class::ReadOnly,
        // Disk, table, memory, locks, connections, transactions, prepared statements: full. A file, or
        // the engine, that could not write. A node without its cluster, of Galera, of Group Replication.
        1021 | 1114 | 1037 | 1041 | 1206 | 1040 | 1203 | 1226 | 1637 | 1461 | 1026 | 1030
        | 1047 | 3100 => Class::Refused,
        // Idle for too long.
        4031 => Class::Overslept,
        // Shut down, killed, offline. A commit that met an error: nobody knows
        // whether it was done. ProxySQL has found no server in time.
        1053 | 1927 | 3169 | 3032 | 3168 | 1180 | 9001 => Class::Unavailable,
        // No such database or user; the host is blocked or not known, the account is locked, the
        // password is old.
        1049 | 1044 | 1045 | 1698 | 1129 | 1130 | 3118 | 4151 | 1820 | 1862 => Class::NotLetIn,
        // No database chosen; no such table or column; no such right; a binary log of statements, which
        // takes none at READ COMMITTED.
        1046 | 1146 | 1054 | 1142 | 1143 | 1227 | 1665 => Class::Misconfigured,
        _ => Class::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_apart_by_their_number() {
        let expected = [
            (1213, Class::Deadlock),
            (1020, Class::Conflict),
            (1412, Class::Conflict),
            (1568, Class::Conflict),
            (1205, Class::Locked),
            (1317, Class::Stopped),
            (1969, Class::Stopped),
            (1290, Class::ReadOnly),
            (1792, Class::ReadOnly),
            (1114, Class::Refused),
            (4031, Class::Overslept),
            (1047, Class::Refused),
            (1030, Class::Refused),
            (1053, Class::Unavailable),
            (1180, Class::Unavailable),
            (9001, Class::Unavailable),
            (1045, Class::NotLetIn),
            (1146, Class::Misconfigured),
            (1665, Class::Misconfigured),
            (1406, Class::Protocol),
        ];
        for (number, expected) in expected {
            assert_eq!(class(number), expected, "{number}");
        }
    }
}
