//! What differs between the databases, and the few calls that the helpers make.
//!
//! Nothing of this can be named outside, so nobody else implements it and it may grow.

use std::future::Future;

use sqlx::error::DatabaseError;
use sqlx::{AssertSqlSafe, Database, Pool, Row};

use super::unique::Unique;
use crate::store::sql::Classes;

/// What an error asks of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Serialization,
    Deadlock,
    Locked,
    Away,
    Other,
}

/// How a database writes what the helpers say.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// Around a name. Not `"` in SQLite, which takes a misspelt column in `"` for a text.
    pub quote: char,
    /// Whether a parameter is `$1`, not `?`.
    pub is_numbered: bool,
    /// The type that a number is cast to.
    pub integer: &'static str,
    /// The key in the column `{id}`, as text that no collation touches.
    pub text: &'static str,
    /// Takes the right to write before anything is read, where rows can not be locked.
    pub lock_of_all: Option<&'static str>,
    pub for_update: &'static str,
    /// Reads what is committed now, where a plain read may be older. Not for update: two who have
    /// both met the same row hold it shared, and would wait for each other.
    pub current: &'static str,
    /// Ends an insert that is not to fail on a row that is there.
    pub if_new: &'static str,
    /// What makes a log of events.
    pub log: &'static str,
    /// Whether an error says that a table is not there.
    pub is_no_table: fn(&dyn DatabaseError) -> bool,
}

/// A database, and who speaks to it. Were that the database itself, then its methods would be in
/// the way of equal names in all code that is generic over [`Database`](super::Database).
pub trait Driven: Database {
    #[doc(hidden)]
    type __Driver: Driver<Self> + Unique<Self>;
}

pub(crate) type Of<DB> = <DB as Driven>::__Driver;
pub(crate) type Text<DB> = <Of<DB> as Driver<DB>>::Text;

/// Who speaks to every database.
#[derive(Debug)]
pub struct Speaker;

pub trait Driver<DB: Database> {
    const SYNTAX: Syntax;

    /// Text that no collation touches.
    type Text: Send + Sync + AsRef<[u8]>;

    fn trouble(error: &sqlx::Error) -> Trouble;

    /// Says how many rows it touched or matched.
    fn run(
        connection: &mut DB::Connection,
        sql: String,
        arguments: DB::Arguments,
    ) -> impl Future<Output = sqlx::Result<u64>> + Send;

    fn rows(
        connection: &mut DB::Connection,
        sql: String,
        arguments: DB::Arguments,
    ) -> impl Future<Output = sqlx::Result<Vec<DB::Row>>> + Send;

    /// Statements without parameters, on a connection of their own.
    fn define(pool: &Pool<DB>, sql: String) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Whether an insert that ends with [`Syntax::if_new`] wrote its row.
    fn is_new(inserted: sqlx::Result<Vec<DB::Row>>) -> sqlx::Result<bool>;

    fn number(row: &DB::Row, at: usize) -> sqlx::Result<i64>;

    fn text(row: &DB::Row, at: usize) -> sqlx::Result<Self::Text>;

    fn add_number(arguments: &mut DB::Arguments, number: i64) -> sqlx::Result<()>;

    fn add_text(arguments: &mut DB::Arguments, text: &Self::Text) -> sqlx::Result<()>;

    fn add_str(arguments: &mut DB::Arguments, text: &str) -> sqlx::Result<()>;
}

macro_rules! is_new {
    (by_rows $inserted:ident) => {
        $inserted.map(|rows| !rows.is_empty())
    };
    // The log has one unique key, so this error has one meaning; only the statement is undone.
    (by_code $inserted:ident) => {
        match $inserted {
            Ok(_) => Ok(true),
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(false),
            Err(error) => Err(error),
        }
    };
}

macro_rules! driver {
    ($database:ty, $text:ty, $is_new:ident, $syntax:expr) => {
        impl super::Database for $database {}

        impl Driven for $database {
            type __Driver = Speaker;
        }

        impl Driver<$database> for Speaker {
            const SYNTAX: Syntax = $syntax;

            type Text = $text;

            fn trouble(error: &sqlx::Error) -> Trouble {
                <$database as Classes>::trouble(error)
            }

            async fn run(
                connection: &mut <$database as Database>::Connection,
                sql: String,
                arguments: <$database as Database>::Arguments,
            ) -> sqlx::Result<u64> {
                let query = sqlx::query_with(AssertSqlSafe(sql), arguments);
                Ok(query.execute(connection).await?.rows_affected())
            }

            async fn rows(
                connection: &mut <$database as Database>::Connection,
                sql: String,
                arguments: <$database as Database>::Arguments,
            ) -> sqlx::Result<Vec<<$database as Database>::Row>> {
                let query = sqlx::query_with(AssertSqlSafe(sql), arguments);
                query.fetch_all(connection).await
            }

            async fn define(pool: &Pool<$database>, sql: String) -> sqlx::Result<()> {
                let statements = sqlx::raw_sql(AssertSqlSafe(sql));
                statements.execute(pool).await.map(drop)
            }

            fn is_new(
                inserted: sqlx::Result<Vec<<$database as Database>::Row>>,
            ) -> sqlx::Result<bool> {
                is_new!($is_new inserted)
            }

            fn number(row: &<$database as Database>::Row, at: usize) -> sqlx::Result<i64> {
                row.try_get(at)
            }

            fn text(row: &<$database as Database>::Row, at: usize) -> sqlx::Result<$text> {
                row.try_get(at)
            }

            fn add_number(
                arguments: &mut <$database as Database>::Arguments,
                number: i64,
            ) -> sqlx::Result<()> {
                add(arguments, number)
            }

            fn add_text(
                arguments: &mut <$database as Database>::Arguments,
                text: &$text,
            ) -> sqlx::Result<()> {
                add(arguments, text)
            }

            fn add_str(
                arguments: &mut <$database as Database>::Arguments,
                text: &str,
            ) -> sqlx::Result<()> {
                add(arguments, text)
            }
        }
    };
}

/// Adds a parameter.
pub(crate) fn add<A, T>(arguments: &mut A, value: T) -> sqlx::Result<()>
where
    A: sqlx::Arguments,
    T: for<'q> sqlx::Encode<'q, A::Database> + sqlx::Type<A::Database>,
{
    arguments.add(value).map_err(sqlx::Error::Encode)
}

#[cfg(feature = "postgres")]
driver!(
    sqlx::Postgres,
    String,
    by_rows,
    Syntax {
        quote: '"',
        is_numbered: true,
        integer: "BIGINT",
        // Bytes are a text as the session says by `bytea_output`; in the log, always in hex.
        text: "CASE WHEN pg_typeof({id}) = 'bytea'::regtype \
               THEN concat(chr(92), 'x', encode(CAST(CAST({id} AS TEXT) AS BYTEA), 'hex')) \
               ELSE CAST({id} AS TEXT) END",
        lock_of_all: None,
        for_update: " FOR UPDATE",
        current: "",
        if_new: " ON CONFLICT DO NOTHING RETURNING version",
        log: include_str!("../states/log/postgres.sql"),
        is_no_table: |error| error.code().is_some_and(|code| code == "42P01"),
    }
);

#[cfg(feature = "mysql")]
driver!(
    sqlx::MySql,
    Vec<u8>,
    by_code,
    Syntax {
        quote: '`',
        is_numbered: false,
        integer: "SIGNED",
        text: "CAST({id} AS BINARY)",
        lock_of_all: None,
        for_update: " FOR UPDATE",
        current: " LOCK IN SHARE MODE",
        if_new: "",
        log: include_str!("../states/log/mysql.sql"),
        is_no_table: |error| error.code().is_some_and(|code| code == "42S02"),
    }
);

#[cfg(feature = "sqlite")]
driver!(
    sqlx::Sqlite,
    String,
    by_rows,
    Syntax {
        quote: '`',
        is_numbered: false,
        integer: "INTEGER",
        // Bytes are seldom a text: they stand in the log as the literal that they are in a statement.
        text: "CASE typeof({id}) WHEN 'blob' THEN quote({id}) ELSE CAST({id} AS TEXT) END",
        lock_of_all: Some("UPDATE {log} SET version = version WHERE 1 = 0"),
        for_update: "",
        current: "",
        if_new: " ON CONFLICT DO NOTHING RETURNING version",
        log: include_str!("../states/log/sqlite.sql"),
        // Its code is the one of every mistake in a statement.
        is_no_table: |error| error.message().starts_with("no such table: "),
    }
);
