//! Records in PostgreSQL, MySQL, MariaDB or SQLite.
//!
//! Every verb is one short transaction of its own: it locks the key, takes the database's time
//! *after* the wait, runs [`step`](crate::record::step()), writes what changed, and commits. What
//! happened is decided by comparing what was read, never by a count of affected rows or the text
//! of an error, so the session's default isolation makes no difference.
//!
//! # The table
//! `migrate` creates `idempotent_record`:
//!
//! | column | what |
//! |---|---|
//! | `key_hash` | SHA-256 of the key text; the primary key |
//! | `business_type`, `business_key` | the key text, before and after `::`, for people and scans |
//! | `request_id` | the owner of the last attempt, 16 bytes |
//! | `status` | as in [`format`](crate::record::format): 0 processing, 1 success, 2 failed, 3 refused, 7 and 8 closed, 9 issued |
//! | `fence`, `attempt` | of the last attempt |
//! | `fingerprint` | of its payload, 16 bytes |
//! | `checkpoint`, `lease_until` | of a processing attempt |
//! | `response_data` | the encoded result or error |
//! | `expire_at` | when the row ends; from then on it is absent, purged or not |
//! | `record` | the packed record, but for `expire_at` and `response_data` |
//! | `create_time`, `update_time` | of the row |
//!
//! Times are microseconds since 1970. A record has one byte format, the one of
//! [`format`](crate::record::format), wherever it is kept: `record` holds it, and is what is read. The
//! columns beside it are made from it for people and their queries. A row in which they disagree
//! was written by somebody else and is reported as damaged, not guessed at. Two columns are in no
//! disagreement with it, and are believed: `response_data`, where other bytes take the place of
//! those it held, and `expire_at`, unless the key is closed. End a record by
//! [`forget`](crate::Idempotency::forget) or [`resolve`](crate::Idempotency::resolve), not by an
//! `UPDATE`. The table `idempotent_record_version` names the format of the table itself.
//!
//! Each call finds its row by the primary key. Two indexes serve only operators: the one on
//! `(business_type, business_key)` scans and their own queries, the one on `expire_at` the purge.
//!
//! In PostgreSQL there is also a function `idempotent_enter_2`, in plpgsql, by which transaction mode
//! locks and reads a key; who uses the table has to be allowed to run it, as everybody is unless
//! somebody has taken that right away. `migrate` also creates it alone, where the tables are there
//! already.
//!
//! Rows whose time is over stay until somebody calls `purge`.
//!
//! # Durability and time
//! [`Store::check`] names tables that are not there, and what in the set-up can lose records: what a
//! crash of the server or the machine takes with it, and on PostgreSQL standbys that get records a
//! little later. On MySQL and MariaDB it does not look at replicas: there a fail-over to one that lags
//! loses the last records, and nobody says so before. Time is the database server's, and in SQLite
//! the machine's.
//!
//! How long a call waits, for a connection and for its answer, is on the clock of its runtime, as in
//! sqlx: where a test pauses that (`start_paused`), calls are without an answer. Such a test takes the
//! [memory store](crate::store::MemoryStore).
//!
//! All calls have to come to the one server that writes, past whoever sends reads to another one
//! (Pgpool-II, `ProxySQL`, `MaxScale`): an answer that writes nothing is believed as well, and a server
//! that lags behind says of a request that is done that nobody has made it. On Galera that is one
//! node for all, or `wsrep_sync_wait = 7` in each session.
//!
//! # A row that somebody keeps locked
//! A call waits less than half its limit for the key. Then a claim is answered by what is committed
//! there, as far as that is a refusal or a replay; where it would be granted, or is abandoned, it is
//! [`InProgress`](crate::Error::InProgress) of unknown age, with a second to wait. Everything else, also
//! what would be so in an SQLite file, which is locked for all keys at once, fails with a
//! [`StoreError`] of kind [`Conflict`](crate::StoreErrorKind::Conflict), as when deadlocks and
//! serialisation failures went on for all of the limit, or where other work of the program had every
//! connection that the pool may have. A one-time token is looked up before any lock is
//! asked for, so that a wrong one is refused as fast as always.
//!
//! # A file of SQLite
//! There is one writer at a time, for all keys and in all processes:
//!
//! - Who has a write transaction open in the file keeps renewals out, too. Where it is open for as long
//!   as a lease, other attempts with `on_abandoned = "rerun"` and other holders of locks are told that
//!   theirs is lost. Keep such transactions short, or leases long. In a rollback journal, which a file
//!   has unless it is told otherwise, who reads for so long does the same: choose WAL. A process that is
//!   stopped in the middle of a write keeps the file until it goes on or ends.
//! - Calls of one store stand in line; those of several processes look for the file now and then. Where
//!   they write without a pause, some find it taken for two fifths of their limit, and fail as above.
//! - Renewals open the file by its name, for a pool of their own: name it from the root, where the process
//!   changes its folder. In memory, or in a file that its connect options lock exclusively, there is only
//!   the given pool: leave it a connection for renewals.
//! - Do not put another file in its place while a process has it open: one process may then write to
//!   both.

mod carried;
mod claim;
mod dialect;
mod fault;
mod held;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod hex;
mod migrate;
#[cfg(feature = "mysql")]
mod mysql;
mod pools;
#[cfg(feature = "postgres")]
mod postgres;
mod records;
pub(crate) mod row;
mod span;
#[cfg(feature = "sqlite")]
mod sqlite;
pub(crate) mod within;

use std::fmt;
use std::time::Duration;

pub(crate) use self::dialect::Classes;
use self::records::Records;
use super::{Answered, Finding, Page, Scan, Store, StoreKey, Watch};
use crate::error::StoreError;
use crate::record::{
    self, Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Refuse, RefuseReply, Renew,
    RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime,
};

/// How long a call may take if nothing else is said.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(2);

/// Writes the store of one database.
macro_rules! sql_store {
    ($(#[$about:meta])* $name:ident over $database:ty) => {
        $(#[$about])*
        ///
        /// Cheap to clone; all clones share the pool.
        ///
        /// # Cancel safety
        /// Dropping a call leaves open whether the database did it; never half of it. No other
        /// call is disturbed. What was begun on a connection for it, opening one too, goes on in a
        /// task of the call's runtime for a little longer (twice the limit, two seconds at least),
        /// so that the connection need not be closed; a transaction that was only waiting for the
        /// key is then rolled back.
        ///
        /// # Concurrent calls on the same key
        /// Each waits for the one before to commit. Those who wait for an attempt of this process,
        /// through this store or a clone, are woken when it ends; an end in another process, or by
        /// the commit of somebody's transaction, is found by looking, at least once a second.
        #[derive(Clone)]
        pub struct $name {
            records: Records<$database>,
        }

        impl $name {
            /// A store of the records in the database of `pool`, which the caller may use for
            /// other things too. Its tables have to be there: see [`migrate`](Self::migrate).
            #[must_use]
            pub fn new(pool: sqlx::Pool<$database>) -> Self {
                Self {
                    records: Records::new(pool, DEFAULT_LIMIT),
                }
            }

            /// How long a call may take in all, waiting for a connection and for locks included;
            /// [`DEFAULT_LIMIT`] unless said. Not longer than the
            /// [engine's](crate::engine::Builder::limit), which would hear nothing in time where
            /// the answer is that somebody has the record, and with `on_store_error = "run"` run the
            /// body beside him. To change it, set both.
            #[must_use]
            pub fn limit(mut self, limit: Duration) -> Self {
                self.records.set_limit(limit);
                self
            }

            /// Creates the tables where they are missing. Two processes may do so at once: one
            /// waits for the other. It takes as long as it takes; the limit does not count here.
            ///
            /// # Errors
            /// A table of that name that is not ours, tables of a later format, missing rights,
            /// or no answer. Dropped or failed, it is safe to be called again.
            pub async fn migrate(&self) -> Result<(), StoreError> {
                self.records.migrate().await
            }

            /// Deletes rows whose time is over, the oldest first, at most `batch` of them and never
            /// more than 10,000, and says how many it deleted. Call it now and then, as often as it
            /// deletes something.
            /// Any number of processes may do so at once; a row whose time is not over is never
            /// touched. In SQLite it has the whole file meanwhile, and then stays away from it for three
            /// times as long, at most for another limit, before it returns: so that the calls of other
            /// processes, and their purges, get their turn.
            ///
            /// # Errors
            /// No answer within the limit, or one that is no permission. What it deleted until
            /// then may stay deleted.
            pub async fn purge(&self, batch: u32) -> Result<u64, StoreError> {
                self.records.purge(batch).await
            }
        }

        impl fmt::Debug for $name {
            /// Names no address: it may hold a password.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("limit", &self.records.limit())
                    .finish_non_exhaustive()
            }
        }

        impl Store for $name {
            async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
                self.records.claim(key, op).await
            }

            async fn renew(&self, key: &StoreKey, op: &Renew) -> Answered<RenewReply> {
                let verb = |slot, now| record::renew(slot, op, now);
                self.records.write(key, verb).await
            }

            async fn settle(&self, key: &StoreKey, op: &Settle) -> Answered<SettleReply> {
                let verb = |slot, now| record::settle(slot, op, now);
                self.records.end(key, verb).await
            }

            async fn issue(&self, key: &StoreKey, op: &Issue) -> Answered<IssueReply> {
                let verb = |slot, now| record::issue(slot, *op, now);
                self.records.write(key, verb).await
            }

            async fn refuse(&self, key: &StoreKey, op: &Refuse) -> Answered<RefuseReply> {
                let verb = |slot, now| record::refuse(slot, *op, now);
                self.records.end(key, verb).await
            }

            async fn forget(&self, key: &StoreKey, op: &Forget) -> Answered<OperatorReply> {
                let verb = |slot, now| record::forget(slot, *op, now);
                self.records.end(key, verb).await
            }

            async fn resolve(&self, key: &StoreKey, op: &Resolve) -> Answered<OperatorReply> {
                let verb = |slot, now| record::resolve(slot, op, now);
                self.records.end(key, verb).await
            }

            async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
                self.records.peek(key).await
            }

            async fn scan(&self, scan: &Scan) -> Answered<Page> {
                self.records.scan(scan).await
            }

            async fn now(&self) -> Result<StoreTime, StoreError> {
                self.records.now().await
            }

            async fn watch(&self, key: &StoreKey) -> Result<Watch, StoreError> {
                Ok(self.records.watch(key))
            }

            async fn check(&self) -> Result<Vec<Finding>, StoreError> {
                self.records.check().await
            }
        }
    };
}

#[cfg(feature = "postgres")]
sql_store! {
    /// A store of records in PostgreSQL.
    ///
    /// The pool serves the runtime in which the store is made; other runtimes that use the store,
    /// such as the one that renews leases, get a pool of their own with the same options, also
    /// where its `set_connect_options` has changed them.
    ///
    /// Schemas of one database may have a table each, as of tenants who are told apart by
    /// `search_path`. Give each a namespace of its own: the lock of a key is the whole database's, and
    /// equal keys of two tenants would be in each other's way.
    ///
    /// A pooler that gives each transaction another session, as `PgBouncer` does by `pool_mode =
    /// transaction`, has to keep prepared statements (from 1.21 on, by `max_prepared_statements`).
    /// Without that it must not be used: calls fail, or meet a statement that somebody else prepared
    /// under the same name, as do those of sqlx itself.
    PostgresStore over sqlx::Postgres
}

#[cfg(feature = "mysql")]
sql_store! {
    /// A store of records in MySQL 8, or in MariaDB 10.6 or later.
    ///
    /// The pool serves the runtime in which the store is made; other runtimes that use the store,
    /// such as the one that renews leases, get a pool of their own with the same options, also
    /// where its `set_connect_options` has changed them. It has to allow several statements in one
    /// message, as it does by default.
    MySqlStore over sqlx::MySql
}

#[cfg(feature = "sqlite")]
sql_store! {
    /// A store of records in an SQLite file.
    ///
    /// All processes that open the file have to be on one machine: its clock is the store's. What is
    /// opened by `sqlite::memory:` is gone with its last connection, and a pool closes one that was
    /// idle for ten minutes, or open for thirty. So let the pool hold one, and keep it:
    /// `max_connections(1)`, `idle_timeout(None)` and `max_lifetime(None)`.
    ///
    /// A pool that asks for `journal_mode` WAL switches a new file to it, and there SQLite does not
    /// always wait as `busy_timeout` says: of processes that open the file at once, one may be told
    /// that the database is locked (code 5), and has to open it again.
    SqliteStore over sqlx::Sqlite
}
