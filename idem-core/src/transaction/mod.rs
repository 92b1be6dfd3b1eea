//! Transaction mode: effect and record commit together.
//!
//! `#[idempotent(…, tx = tx)]`, or [`Idempotency::run_in`] in programs, guards a body that writes
//! through a transaction of its caller. The record is written into the same transaction, in the
//! table of the SQL stores ([`migrate`](crate::store::sql)), once and with its result: commit keeps
//! both, rollback loses both, and no crash parts them. The engine gives the namespace, the defaults
//! and the limits; its store is not asked and may be another. What is asked of an engine from outside
//! ([`peek`](Idempotency::peek), [`resolve`](Idempotency::resolve), [`refuse`](Idempotency::refuse) and
//! their like) is asked of its store: for these records by one whose store is the table.
//!
//! The body runs in a savepoint, which it gets as its transaction. Whatever else than success ends
//! it (an error, a panic, a drop by a time-out around the call), its effects are taken back and no
//! record stays, also if the caller commits. Only an error that is to be replayed is recorded, and
//! kept if the caller commits after it.
//!
//! # Examples
//! ```
//! # type Failure = Box<dyn std::error::Error + Send + Sync>;
//! # #[cfg(feature = "sqlite")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Failure> {
//! # use sqlx::sqlite::SqlitePoolOptions;
//! use idem_core::{Idempotency, Key, Policy, store::SqliteStore};
//!
//! # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
//! let store = SqliteStore::new(pool.clone());
//! store.migrate().await?;
//! sqlx::raw_sql("CREATE TABLE payment (order_no TEXT)").execute(&pool).await?;
//! let idem = Idempotency::builder(store).build()?;
//!
//! for _ in 0..2 {
//!     let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
//!     let key = Key::new("order:pay", "A-1")?;
//!     let paid: Result<String, Failure> = idem
//!         .run_in(&mut tx, key, Policy::new(), async |tx| {
//!             sqlx::query("INSERT INTO payment VALUES ('A-1')").execute(&mut **tx).await?;
//!             Ok("paid".to_owned())
//!         })
//!         .await;
//!     assert_eq!(paid?, "paid"); // the second time from the record
//!     tx.commit().await?;
//! }
//! let payments: i64 = sqlx::query_scalar("SELECT count(*) FROM payment").fetch_one(&pool).await?;
//! assert_eq!(payments, 1);
//! # Ok(()) }
//! # #[cfg(not(feature = "sqlite"))] fn main() {}
//! ```
//!
//! # Cancel safety
//! A call that is dropped leaves nothing of its body in the transaction. The caller's own statements
//! are another matter: a `begin()` of sqlx that is dropped while `BEGIN` is on the wire gives its
//! connection back to the pool in a transaction that sqlx knows nothing of, and what is written on it
//! later is answered, but never committed. Where a caller can go away, as the handler of a request
//! does with its client, run all from the `begin()` to the commit in a task of its own
//! (`tokio::spawn`).
//!
//! On MySQL, not on MariaDB, a call that is dropped while it waits for a key in vain leaves its session
//! with an `innodb_lock_wait_timeout` of one second, until the next call on it.
//!
//! # Concurrent calls on the same key
//! The key is the first call's until its caller ends the transaction. Others get
//! [`Error::InProgress`], on PostgreSQL at once, on MySQL within two seconds, or wait for that end
//! with `in_progress = "wait"`; on MySQL in whole seconds. On SQLite a write transaction has the
//! whole file, and the connection's `busy_timeout` says how long others wait for it. Calls on other
//! keys do not wait. A call in lease mode on the same table is excluded just as well. One that was
//! answered has the key, too, on PostgreSQL until its caller's next statement, on MySQL until its
//! transaction ends: do not leave that open for long.
//!
//! # Many calls in one transaction
//! A call leaves savepoints open until its caller's transaction ends: on SQLite two, on PostgreSQL
//! one, as does [`insert_or_get`](crate::sql::insert_or_get). So a call costs the more the more were
//! made before it in the same transaction; from some thousands on that is felt. On PostgreSQL each also
//! keeps an entry of the server's lock table, which is shared by all and has room for
//! `max_locks_per_transaction` × (`max_connections` + `max_prepared_transactions`) of them, 6,400 by
//! default. When it is full, everybody hears `out of shared memory`: commit every some hundred.
//!
//! # Isolation
//! PostgreSQL at READ COMMITTED is the cheapest. At a higher level a transaction that began before
//! another one finished the same request can not see that, and is told so by 40001, before the body
//! runs: roll back, and try again in a new transaction. On MySQL every level will do, and on MariaDB
//! where `innodb_snapshot_isolation` is off; where it is on, as by default from 11.6.2 on, REPEATABLE
//! READ and SERIALIZABLE say so by 1020, which is like a deadlock (below). On SQLite
//! begin by `begin_with("BEGIN IMMEDIATE")`: a transaction that read before it wrote can find that
//! it is too late to write.
//!
//! # Errors
//! Deadlocks, serialisation failures and a busy file are [`Error::Store`], retryable in a new
//! transaction; the error of sqlx, with its SQLSTATE, is the [`StoreError`](crate::StoreError)'s
//! source. Roll back after any of them.
//!
//! A deadlock on MySQL has rolled back the whole transaction, and what is written after it would
//! commit by itself. So where the call returns an error, nothing can be written until the caller has
//! ended the transaction (1792); nothing of it is kept, even by a commit. The same where sqlx rolled
//! back because PostgreSQL had given up the transaction before the call (25P02), also where a body goes on
//! after that and calls another. With `innodb_rollback_on_timeout` a wait for a lock that was in vain
//! (1205), also the one for a key, is like a deadlock.
//!
//! A body on MySQL has to return such an error: what it still writes after it is committed at once, and
//! has no record. Where it panics or is dropped after one, nothing stands in the caller's way either:
//! who catches the panic rolls back before anything is written on.
//!
//! SQLite, too, rolls back the whole transaction after some errors (`SQLITE_FULL`, `SQLITE_IOERR`,
//! `SQLITE_NOMEM`, a constraint with `ON CONFLICT ROLLBACK`), and what is written after one is committed
//! statement by statement: return the error, from a body as from the transaction around it. A call whose
//! own statement or whose body met one returns an error, and nothing can be committed until its caller
//! has rolled back (787; not where `foreign_keys` is off, and not behind the next such error). An `Ok` of
//! the body becomes [`Error::OutcomeUnknown`]. A call can not see what its caller met before it, and
//! nobody guards a caller whose own statement meets one, or whose body panics behind it or is dropped:
//! sqlx goes on counting a transaction that is no more. Close the connection.
//!
//! What ends the caller's transaction does not belong in a body: `COMMIT` or `ROLLBACK`, and on MySQL
//! what commits by itself, `CREATE`, `ALTER`, `TRUNCATE` and their like. Where the transaction in which
//! a body began is no more at its end, also because it kept a deadlock on MySQL to itself, nobody knows
//! what of it is kept. The call says so by [`Error::OutcomeUnknown`]; without a key by an
//! [`Error::Store`] that is not retryable. No success is recorded, as its effects may be gone: so the
//! next call with the key may run the body again, also where they are not. Look before you make it.
//! PostgreSQL says so also of a body that then returns an error, and lets the caller write nothing
//! more until it has ended its transaction; on the others that error is returned as it is.
//!
//! A `begin` on `tx` that fails, or that a time-out drops, makes sqlx roll back the savepoint of the
//! body with it, and on PostgreSQL what is around that, too. The call then returns an error, and
//! nothing is kept of what the body did. But where PostgreSQL was left in no transaction at all, what
//! the body still writes is committed at once, and an `Ok` of it becomes [`Error::OutcomeUnknown`]; and
//! where the call itself is dropped after that, so is what its caller still writes. So let no time-out
//! drop a `begin`, and return its error.
//!
//! Nor may one drop the `commit` of a savepoint, in a body or beside calls. On PostgreSQL sqlx then goes
//! back to an older savepoint, if one of the same name is open: one that was rolled back, or that a call
//! has left. What was done since that one began, the effects and the record of that call with it, is
//! taken back without a word, and the `COMMIT` of the rest is `Ok`.
//!
//! A call within the body of another, with the same key and in the same transaction, is a mistake: it
//! gets an [`Error::Store`] of the kind [`Protocol`](crate::StoreErrorKind::Protocol), and no body runs.
//! Where there are bodies of other keys in between, the outermost returns an error, and the effects of
//! all are taken back.

mod admit;
mod run;
mod savepoint;
mod settle_in;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Transaction;

pub(crate) use self::admit::admit;
pub(crate) use self::run::Run;
#[cfg(feature = "sqlite")]
pub(crate) use self::savepoint::Whole;
#[cfg(feature = "postgres")]
pub(crate) use self::savepoint::open;
pub(crate) use self::savepoint::{level, restore};
use crate::engine::Idempotency;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::policy::{Policy, invalid};
use crate::results::Results;
use crate::store::sql::within::Within;

/// A database that transaction mode knows: PostgreSQL, MySQL (and MariaDB), SQLite. It can not be
/// implemented elsewhere.
pub trait Database: Within {}

impl<D: Within> Database for D {}

impl Idempotency {
    /// Runs `body` once for `key` in the transaction `tx`, in which the record is kept, too: the
    /// form for programs of `tx = …`. See [`transaction`](self).
    ///
    /// # Errors
    /// What the body returns, and [`Error`] as `E` wherever the guard does not let it run or its
    /// record can not be written. In any of these nothing of the body is left in `tx`.
    ///
    /// # Cancel safety
    /// Dropped at any moment, the effects of the body are taken back before the next statement of
    /// `tx`, or, at the very end, are kept with their record. If that next statement fails, it is
    /// by an error that was on its way to the dropped call: roll back.
    ///
    /// Of sqlx's own calls on MySQL, one that is dropped while it prepares a statement, or while an answer
    /// arrives in pieces, leaves the connection out of step, and what is asked next may wait for ever. For
    /// bodies that time-outs may end, `sqlx::raw_sql` is safer there; where the caller can go away, run
    /// the transaction in a task of its own (`tokio::spawn`).
    ///
    /// # Concurrent calls on the same key
    /// See [`transaction`](self).
    pub async fn run_in<T, E, D>(
        &self,
        tx: &mut Transaction<'_, D>,
        key: Key,
        policy: Policy,
        body: impl AsyncFnOnce(&mut Transaction<'_, D>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
        D: Database,
    {
        self.run_in_with(tx, key, policy, Results::stored(), None, body)
            .await
    }

    /// [`run_in`](Self::run_in) with a say in how results travel, and a hash of the payload that
    /// has to be equal for one key.
    ///
    /// # Errors
    /// As for [`run_in`](Self::run_in).
    pub async fn run_in_with<T, E, D>(
        &self,
        tx: &mut Transaction<'_, D>,
        key: Key,
        policy: Policy,
        results: Results<T, E>,
        fingerprint: Option<Fingerprint>,
        body: impl AsyncFnOnce(&mut Transaction<'_, D>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<Error>,
        D: Database,
    {
        if policy.recovers() || policy.forgets() {
            return Err(results.refused(invalid(
                "`recover` and `forget` have no meaning in a transaction: what an attempt that died has done is rolled back, and a success without its record would run again",
            )));
        }
        let before = level::<D>(tx).await;
        let admitted = admit(self, Ok(key), policy, results, fingerprint, &mut **tx);
        let answer = match admitted.await {
            Ok((run, mut savepoint)) => {
                // What it does before its first await is the body, too.
                let body = Box::pin(async { body(&mut savepoint).await });
                let result = run.body(body).await;
                run.settle(result, results, savepoint).await
            }
            Err(answer) => answer,
        };
        if answer.is_err() {
            restore::<D>(tx, before).await;
        }
        answer
    }
}
