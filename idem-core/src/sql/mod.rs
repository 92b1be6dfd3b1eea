//! Help for statements of your own, in your own transactions: PostgreSQL, MySQL, MariaDB, SQLite.

pub(crate) mod driver;
mod error;
mod insert;
pub(crate) mod unique;

pub use self::error::SqlError;
pub use self::insert::{InsertError, Insertion, insert_or_get};

/// A database that the helpers speak to: `sqlx::Postgres`, `sqlx::MySql` (MariaDB too) or
/// `sqlx::Sqlite`, each with the feature of its name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no database that is switched on",
    note = "switch on the feature `postgres`, `mysql` or `sqlite` of idem-core"
)]
pub trait Database: driver::Driven {}
