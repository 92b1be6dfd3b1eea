//! Locks: one holder at a time for a key, by a lease and with a fence.
//!
//! A lock is a record that is released instead of settled. It lives under a [key of its
//! own](Key::of_lock), so that a lock and a request with one key do not meet. The holder's lease is
//! renewed in the background; when it can not be, [`Lock::lost`] fires after 0.8 of the lease, and
//! after all of it the next one gets the lock, with a higher fence.
//!
//! # A lock is advice
//! A holder that is paused for longer than its lease (a stopped process, a long collection of
//! garbage in what it calls, a machine that sleeps) does not know that the lock has gone on to
//! somebody else, and no lock over a network can stop it. What it writes to can: it keeps the
//! highest [fence](Lock::fence) that it has seen, and refuses a smaller one. It has to see a fence
//! **before its holder reads**. One that comes only with the last write lets in a holder that wakes
//! while the next one has read and not yet written, and one of their two changes is lost. With SQL:
//!
//! ```
//! # type Failure = Box<dyn std::error::Error + Send + Sync>;
//! # #[cfg(feature = "sqlite")] mod sqlite {
//! # use super::Failure;
//! # use idem_core::Idempotency;
//! # use sqlx::sqlite::SqlitePoolOptions;
//! use idem_core::{Lock, locked};
//! use sqlx::SqlitePool;
//!
//! #[locked(prefix = "account", key = account, wait = "5s")]
//! async fn book(pool: &SqlitePool, account: i64, cents: i64) -> Result<i64, Failure> {
//!     let fence = Lock::current().expect("this body is locked").fence().as_i64();
//!     let mut tx = pool.begin().await?;
//!     // From here on no holder before this one can write, however late it wakes.
//!     let fenced = sqlx::query("UPDATE account SET fence = $1 WHERE id = $2 AND fence <= $1")
//!         .bind(fence)
//!         .bind(account)
//!         .execute(&mut *tx)
//!         .await?;
//!     if fenced.rows_affected() == 0 {
//!         return Err("a later holder was here, or there is no such account".into());
//!     }
//!     let before: i64 = sqlx::query_scalar("SELECT balance FROM account WHERE id = $1")
//!         .bind(account)
//!         .fetch_one(&mut *tx)
//!         .await?;
//!     sqlx::query("UPDATE account SET balance = $1 WHERE id = $2")
//!         .bind(before + cents)
//!         .bind(account)
//!         .execute(&mut *tx)
//!         .await?;
//!     tx.commit().await?; // before the release
//!     Ok(before + cents)
//! }
//!
//! # pub async fn main() -> Result<(), Failure> {
//! # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
//! # let table = "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, fence INTEGER)";
//! # sqlx::raw_sql(table).execute(&pool).await?;
//! # sqlx::raw_sql("INSERT INTO account VALUES (7, 100, 0)").execute(&pool).await?;
//! # Idempotency::memory().scope(async {
//! assert_eq!(book(&pool, 7, 50).await?, 150);
//! assert_eq!(book(&pool, 7, 20).await?, 170);
//! # Ok(()) }).await
//! # }
//! # }
//! # #[cfg(feature = "sqlite")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Failure> { sqlite::main().await }
//! # #[cfg(not(feature = "sqlite"))] fn main() {}
//! ```
//!
//! A holder that stands still behind that first update keeps the row locked, and the next one waits
//! there until that transaction ends. [`Fence::condition`] writes the condition for a column that may
//! be `NULL`. The attempt of an [idempotent](macro@crate::idempotent) function has a
//! [fence](crate::Attempt::fence) for the same use.
//!
//! Release after the commit, not before: between the two the next holder reads what was there
//! before you. And where the database can do it alone (a conditional update, a unique key), it
//! needs no lock.

mod guard;
mod held;
mod request;

pub use guard::LockGuard;
pub use held::Lock;
pub use request::LockRequest;

#[expect(unused_imports, reason = "named in the documentation above")]
use crate::{key::Key, record::Fence};
