//! Inserts that meet a unique constraint, and how each database names it.

use std::future::{Future, ready};

use sqlx::error::DatabaseError;
use sqlx::query::{Query, QueryAs};
use sqlx::{Database, FromRow};

use super::driver::Speaker;

type Arguments<DB> = <DB as Database>::Arguments;

pub trait Unique<DB: Database> {
    /// Runs an insert. One that fails leaves a transaction usable.
    fn insert(
        connection: &mut DB::Connection,
        insert: Query<'_, DB, DB::Arguments>,
    ) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// Whether what has just failed took the transaction around it with it, one that sqlx has begun.
    /// Then nothing can be committed until its owner has ended it.
    fn is_rolled_back(_: &mut DB::Connection) -> impl Future<Output = bool> + Send {
        ready(false)
    }

    /// Whether an error says that the transaction takes no statement any more.
    fn is_given_up(_: &sqlx::Error) -> bool {
        false
    }

    /// Reads what is committed now, whatever the transaction has read before.
    fn select<T>(
        connection: &mut DB::Connection,
        select: QueryAs<'_, DB, T, DB::Arguments>,
    ) -> impl Future<Output = sqlx::Result<Option<T>>> + Send
    where
        T: Send + Unpin + for<'r> FromRow<'r, DB::Row>;

    /// What an error names.
    fn constraint(error: &dyn DatabaseError) -> Option<&str>;

    /// Whether what an error names is the constraint of this name.
    fn is_named(
        connection: &mut DB::Connection,
        error: &dyn DatabaseError,
        name: &str,
    ) -> impl Future<Output = sqlx::Result<bool>> + Send;
}

#[cfg(feature = "postgres")]
impl Unique<sqlx::Postgres> for Speaker {
    async fn insert(
        connection: &mut sqlx::PgConnection,
        insert: Query<'_, sqlx::Postgres, Arguments<sqlx::Postgres>>,
    ) -> sqlx::Result<u64> {
        use crate::transaction::{level, restore};
        use sqlx::Connection;
        // By itself, an error would end the whole transaction.
        if !connection.is_in_transaction() {
            return Ok(insert.execute(connection).await?.rows_affected());
        }
        let before = level::<sqlx::Postgres>(connection).await;
        let inserted = in_a_savepoint(connection, insert).await;
        restore::<sqlx::Postgres>(connection, before).await;
        inserted
    }

    fn is_given_up(error: &sqlx::Error) -> bool {
        let code = error.as_database_error().and_then(DatabaseError::code);
        code.as_deref() == Some("25P02")
    }

    async fn select<T>(
        connection: &mut sqlx::PgConnection,
        select: QueryAs<'_, sqlx::Postgres, T, Arguments<sqlx::Postgres>>,
    ) -> sqlx::Result<Option<T>>
    where
        T: Send + Unpin + for<'r> FromRow<'r, sqlx::postgres::PgRow>,
    {
        select.fetch_optional(connection).await
    }

    fn constraint(error: &dyn DatabaseError) -> Option<&str> {
        error.constraint()
    }

    async fn is_named(
        _: &mut sqlx::PgConnection,
        error: &dyn DatabaseError,
        name: &str,
    ) -> sqlx::Result<bool> {
        Ok(error.constraint() == Some(name))
    }
}

#[cfg(feature = "postgres")]
async fn in_a_savepoint(
    connection: &mut sqlx::PgConnection,
    insert: Query<'_, sqlx::Postgres, Arguments<sqlx::Postgres>>,
) -> sqlx::Result<u64> {
    use crate::store::sql::within::{Within, depth};
    let mut savepoint = crate::transaction::open::<sqlx::Postgres>(connection).await?;
    let depth = depth::<sqlx::Postgres>(&savepoint);
    match insert.execute(&mut *savepoint).await {
        Ok(inserted) => {
            // Not by sqlx: dropped meanwhile, it could go back to an older savepoint of this name.
            sqlx::Postgres::keep(savepoint, depth).await?;
            Ok(inserted.rows_affected())
        }
        Err(error) => {
            // Where this fails too, so does the next statement; what the insert said is said here
            // or nowhere.
            let _ = savepoint.rollback().await;
            Err(error)
        }
    }
}

#[cfg(feature = "mysql")]
impl Unique<sqlx::MySql> for Speaker {
    async fn insert(
        connection: &mut sqlx::MySqlConnection,
        insert: Query<'_, sqlx::MySql, Arguments<sqlx::MySql>>,
    ) -> sqlx::Result<u64> {
        Ok(insert.execute(connection).await?.rows_affected())
    }

    /// A plain read at REPEATABLE READ gives nothing, or the row as it was. A shared lock, because
    /// a failed insert has left one: two who both asked for more would wait for each other.
    async fn select<T>(
        connection: &mut sqlx::MySqlConnection,
        mut select: QueryAs<'_, sqlx::MySql, T, Arguments<sqlx::MySql>>,
    ) -> sqlx::Result<Option<T>>
    where
        T: Send + Unpin + for<'r> FromRow<'r, sqlx::mysql::MySqlRow>,
    {
        use sqlx::Execute;
        let arguments = select.take_arguments().map_err(sqlx::Error::Encode)?;
        let is_kept = Execute::persistent(&select);
        let sql = select.sql();
        let sql = sql.as_str().trim_end_matches([';', ' ', '\n', '\t', '\r']);
        let locking = sqlx::AssertSqlSafe(format!("{sql}\nLOCK IN SHARE MODE"));
        sqlx::query_as_with(locking, arguments.unwrap_or_default())
            .persistent(is_kept)
            .fetch_optional(connection)
            .await
    }

    fn constraint(error: &dyn DatabaseError) -> Option<&str> {
        last_quoted(error.message())
    }

    async fn is_named(
        _: &mut sqlx::MySqlConnection,
        error: &dyn DatabaseError,
        name: &str,
    ) -> sqlx::Result<bool> {
        Ok(names_key(error.message(), name))
    }
}

/// The message is the only place in which the key stands: last, in quotes, in every language of the
/// server; before it stands the value, which may hold anything.
#[cfg(feature = "mysql")]
fn last_quoted(message: &str) -> Option<&str> {
    let (before, _) = message.rsplit_once('\'')?;
    let (_, quoted) = before.rsplit_once('\'')?;
    Some(quoted)
}

/// `'key'` in MariaDB, `'table.key'` in MySQL 8. Compared from its end, so that a quote in the name
/// does no harm.
#[cfg(feature = "mysql")]
fn names_key(message: &str, name: &str) -> bool {
    let Some((quoted, _)) = message.rsplit_once('\'') else {
        return false;
    };
    let before = quoted.strip_suffix(name);
    before.is_some_and(|before| before.ends_with(['\'', '.']))
}

#[cfg(feature = "sqlite")]
impl Unique<sqlx::Sqlite> for Speaker {
    async fn insert(
        connection: &mut sqlx::SqliteConnection,
        insert: Query<'_, sqlx::Sqlite, Arguments<sqlx::Sqlite>>,
    ) -> sqlx::Result<u64> {
        Ok(insert.execute(connection).await?.rows_affected())
    }

    async fn is_rolled_back(connection: &mut sqlx::SqliteConnection) -> bool {
        crate::store::sql::within::renew_if_gone(connection).await
    }

    async fn select<T>(
        connection: &mut sqlx::SqliteConnection,
        select: QueryAs<'_, sqlx::Sqlite, T, Arguments<sqlx::Sqlite>>,
    ) -> sqlx::Result<Option<T>>
    where
        T: Send + Unpin + for<'r> FromRow<'r, sqlx::sqlite::SqliteRow>,
    {
        select.fetch_optional(connection).await
    }

    fn constraint(error: &dyn DatabaseError) -> Option<&str> {
        columns_or_index(error.message())
    }

    async fn is_named(
        connection: &mut sqlx::SqliteConnection,
        error: &dyn DatabaseError,
        name: &str,
    ) -> sqlx::Result<bool> {
        let violated = columns_or_index(error.message());
        if violated == Some(name) {
            return Ok(true);
        }
        let columns: Vec<String> = sqlx::query_scalar(
            "SELECT master.tbl_name || '.' || part.name \
             FROM sqlite_master AS master JOIN pragma_index_info(master.name) AS part \
             WHERE master.type = 'index' AND master.name = ? ORDER BY part.seqno",
        )
        .bind(name)
        .fetch_all(connection)
        .await?;
        Ok(violated == Some(&columns.join(", ")))
    }
}

/// The message is the only place: `table.column, table.column`, or, of an index on expressions, its
/// name.
#[cfg(feature = "sqlite")]
fn columns_or_index(message: &str) -> Option<&str> {
    let columns = message.strip_prefix("UNIQUE constraint failed: ")?;
    let index = columns.strip_prefix("index '");
    let index = index.and_then(|index| index.strip_suffix('\''));
    Some(index.unwrap_or(columns))
}

#[cfg(all(test, feature = "mysql"))]
mod tests {
    use super::{last_quoted, names_key};

    #[test]
    fn the_key_is_found_behind_any_value_and_in_any_language() {
        for (message, key) in [
            ("Duplicate entry 'A-1' for key 'by_request'", "by_request"),
            (
                "Duplicate entry '' for key 'orders.by_request'",
                "orders.by_request",
            ),
            (
                "Duplicate entry 'x' for key 'other' for key 'by_request'",
                "by_request",
            ),
            (
                "Doppelter Eintrag 'A-1' für Schlüssel 'by_request'",
                "by_request",
            ),
            ("'A-1' は索引 'by_request' で重複しています。", "by_request"),
            ("重复条目'A-1'键'by_request'", "by_request"),
        ] {
            assert_eq!(last_quoted(message), Some(key));
            assert!(names_key(message, "by_request"), "{message}");
            for other in ["other", "request", "A-1", "", "Order"] {
                assert!(!names_key(message, other), "{message}: {other}");
            }
        }
    }

    #[test]
    fn a_key_with_a_quote_in_its_name_is_known() {
        assert!(names_key("Duplicate entry 'x' for key 'it's'", "it's"));
        assert!(!names_key("Duplicate entry 'x' for key 'it's'", "its"));
    }

    #[test]
    fn a_message_without_a_key_names_none() {
        for message in ["no quotes", "one ' only"] {
            assert!(!names_key(message, "no quotes"));
            assert_eq!(last_quoted(message), None);
        }
    }
}
