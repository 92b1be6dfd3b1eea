//! What is said to the server, and how long it may wait for locks.

use std::time::Duration;

use super::super::dialect::longest_silence;
use super::super::hex::hex;
use super::super::row::{Address, columns};

macro_rules! clock {
    () => {
        "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
    };
}

pub(super) const NOW: &str = concat!("SELECT ", clock!());

pub(super) const FIND: &str = concat!(
    "SELECT clock.micros, ",
    columns!(),
    " FROM (SELECT ",
    clock!(),
    " AS micros) AS clock LEFT JOIN idempotent_record ON key_hash = ?"
);

pub(in crate::store::sql) const UPDATE: &str = "UPDATE idempotent_record SET request_id = ?, \
     status = ?, fence = ?, attempt = ?, fingerprint = ?, checkpoint = ?, lease_until = ?, \
     response_data = ?, expire_at = ?, record = ?, update_time = ?, \
     create_time = IF(create_time = 0, update_time, create_time) WHERE key_hash = ?";

pub(super) const DELETE: &str = "DELETE FROM idempotent_record WHERE key_hash = ?";

/// The rows of one type between two keys. A comparison of pairs would be plainer, but is not
/// looked up in the index.
macro_rules! page {
    ($from:literal) => {
        concat!(
            "SELECT business_type, business_key, ",
            clock!(),
            ", ",
            columns!(),
            " FROM idempotent_record WHERE business_type = ? AND business_key ",
            $from,
            " ? AND business_key < ? ORDER BY business_key LIMIT ?"
        )
    };
}

pub(super) const PAGE_FROM: &str = page!(">=");
pub(super) const PAGE_AFTER: &str = page!(">");

/// The rows of later types.
pub(super) const LATER_TYPES: &str = concat!(
    "SELECT business_type, business_key, ",
    clock!(),
    ", ",
    columns!(),
    " FROM idempotent_record WHERE business_type > ? AND business_type < ?",
    " ORDER BY business_type, business_key LIMIT ?"
);

/// Rows that a call or another purge is at are left for the next time.
pub(super) const OVER: &str = "SELECT key_hash FROM idempotent_record WHERE expire_at <= ? \
     ORDER BY expire_at LIMIT ? FOR UPDATE SKIP LOCKED";

/// The session's own patience with locks, and with silence, is put aside, and back by [`COMMIT`] and
/// [`ROLLBACK`].
macro_rules! begin {
    () => {
        "SET @idem_patience = @@SESSION.innodb_lock_wait_timeout, \
         SESSION innodb_lock_wait_timeout = {seconds}, \
         @idem_silence = @@SESSION.wait_timeout, SESSION wait_timeout = {silence}; \
         SET TRANSACTION ISOLATION LEVEL READ COMMITTED; \
         START TRANSACTION"
    };
}

/// Begins what only looks.
pub(super) const LOOK: &str =
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ ONLY";

pub(super) const COMMIT: &str = "COMMIT; SET SESSION innodb_lock_wait_timeout = @idem_patience, \
     SESSION wait_timeout = @idem_silence";
pub(super) const ROLLBACK: &str = "ROLLBACK; SET SESSION innodb_lock_wait_timeout = @idem_patience, \
     SESSION wait_timeout = @idem_silence";

/// One per database: the name may have 64 characters, and is the whole server's.
pub(super) const MIGRATING: &str =
    "SELECT GET_LOCK(MD5(CONCAT(DATABASE(), '.idempotent_record')), 600)";

/// In whole seconds, as the server counts; more than the longest would be refused.
pub(in crate::store::sql) fn lock_wait_timeout(patience: Duration) -> u64 {
    /// MariaDB's; MySQL has a longer one.
    const LONGEST: u64 = 100_000_000;
    patience.as_secs().clamp(1, LONGEST)
}

/// The longest `wait_timeout`, in seconds: a year.
const LONGEST_WAIT: u64 = 31_536_000;

pub(super) fn begin(patience: Duration) -> String {
    format!(
        begin!(),
        seconds = lock_wait_timeout(patience),
        silence = lock_wait_timeout(longest_silence(patience)).min(LONGEST_WAIT)
    )
}

/// Either way the row is there afterwards, and locked; of what stands in it nothing changes. `''` would
/// be NULL to a session of MariaDB in the mode `EMPTY_STRING_IS_NULL`.
pub(in crate::store::sql) fn insert_or_lock(at: &Address) -> String {
    format!(
        "INSERT INTO idempotent_record (key_hash, business_type, business_key, request_id, \
         status, fence, attempt, checkpoint, expire_at, record, create_time, update_time) \
         VALUES (x'{}', _utf8mb4 x'{}', _utf8mb4 x'{}', x'', 0, 0, 0, FALSE, 0, x'', 0, 0) \
         ON DUPLICATE KEY UPDATE status = status",
        hex(&at.hash),
        hex(at.business_type.as_bytes()),
        hex(at.business_key.as_bytes())
    )
}

/// [`FIND`] of this key, in a text.
pub(in crate::store::sql) fn find(at: &Address) -> String {
    FIND.replace('?', &format!("x'{}'", hex(&at.hash)))
}
