//! Statements that run on each of the databases.
//!
//! With one database you would write `sqlx::query`; this is what a choice of three costs.

use std::fmt;
use std::future::Future;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::query::{Query, QueryAs};
use sqlx::{
    AssertSqlSafe, ColumnIndex, Database, Decode, Encode, Execute, Executor, FromRow, Row, Type,
    query, query_as_with,
};

use super::Dialect;

/// A value type that a database can take and give.
pub trait Holds<T>: Database {
    /// Binds the value to the next placeholder.
    fn bind(query: Prepared<Self>, value: T) -> Prepared<Self>;

    /// Reads the value in this column.
    ///
    /// # Errors
    /// There is no such column, or it holds something else.
    fn get(row: &Self::Row, column: &str) -> sqlx::Result<T>;

    /// Writes the value as this database takes it.
    ///
    /// # Errors
    /// It can not be written.
    fn encode(value: &T, into: &mut Self::ArgumentBuffer) -> Result<IsNull, BoxDynError>;

    /// What this database calls the type.
    fn type_info() -> Self::TypeInfo;
}

impl<DB, T> Holds<T> for DB
where
    DB: Database,
    T: for<'q> Encode<'q, DB> + for<'r> Decode<'r, DB> + Type<DB>,
    for<'c> &'c str: ColumnIndex<DB::Row>,
{
    fn bind(query: Prepared<DB>, value: T) -> Prepared<DB> {
        query.bind(value)
    }

    fn get(row: &DB::Row, column: &str) -> sqlx::Result<T> {
        // Unchecked: MySQL gives text that was kept as bytes, so that only equal bytes are equal.
        row.try_get_unchecked(column)
    }

    fn encode(value: &T, into: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        value.encode_by_ref(into)
    }

    fn type_info() -> DB::TypeInfo {
        T::type_info()
    }
}

/// Text that any of the databases takes, where an interface of sqlx asks for that.
#[derive(Debug, Clone)]
pub struct Text(pub String);

impl<DB: Holds<String>> Encode<'_, DB> for Text {
    fn encode_by_ref(&self, into: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        DB::encode(&self.0, into)
    }
}

impl<DB: Holds<String>> Type<DB> for Text {
    fn type_info() -> DB::TypeInfo {
        DB::type_info()
    }
}

/// Reads one column, whatever the database.
///
/// # Errors
/// There is no such column, or it holds something else.
pub fn get<R, T>(row: &R, column: &str) -> sqlx::Result<T>
where
    R: Row<Database: Holds<T> + Database<Row = R>>,
{
    R::Database::get(row, column)
}

type Prepared<DB> = Query<'static, DB, <DB as Database>::Arguments>;

/// A connection that runs statements.
pub trait Runs<DB: Database>: Send {
    /// Runs one for what it changes.
    fn change(
        &mut self,
        query: Prepared<DB>,
    ) -> impl Future<Output = sqlx::Result<DB::QueryResult>> + Send;

    /// Runs one for its rows.
    fn read(
        &mut self,
        query: Prepared<DB>,
    ) -> impl Future<Output = sqlx::Result<Vec<DB::Row>>> + Send;

    /// Runs any number, without values.
    fn script(&mut self, text: &'static str) -> impl Future<Output = sqlx::Result<()>> + Send;
}

impl<DB, C> Runs<DB> for C
where
    DB: Dialect,
    C: Send,
    for<'c> &'c mut C: Executor<'c, Database = DB>,
{
    async fn change(&mut self, query: Prepared<DB>) -> sqlx::Result<DB::QueryResult> {
        self.execute(query).await
    }

    async fn read(&mut self, query: Prepared<DB>) -> sqlx::Result<Vec<DB::Row>> {
        self.fetch_all(query).await
    }

    async fn script(&mut self, text: &'static str) -> sqlx::Result<()> {
        self.execute(sqlx::raw_sql(text)).await?;
        Ok(())
    }
}

/// A statement with its values.
#[must_use = "it does nothing before it is run"]
pub struct Sql<DB: Dialect>(Prepared<DB>);

impl<DB: Dialect> fmt::Debug for Sql<DB> {
    /// Without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sql").finish_non_exhaustive()
    }
}

/// A statement with `?` for each value.
pub fn sql<DB: Dialect>(text: &str) -> Sql<DB> {
    let text = if DB::NUMBERS_PLACEHOLDERS {
        numbered(text)
    } else {
        text.to_owned()
    };
    // Our own text; what others say is bound.
    Sql(query(AssertSqlSafe(text)))
}

fn numbered(text: &str) -> String {
    let mut parts = text.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    let number = |text: String, (index, part)| format!("{text}${}{part}", index + 1);
    parts.enumerate().fold(first, number)
}

impl<DB: Dialect> Sql<DB> {
    /// The value of the next placeholder.
    pub fn bind<T>(self, value: T) -> Self
    where
        DB: Holds<T>,
    {
        Self(<DB as Holds<T>>::bind(self.0, value))
    }

    /// What sqlx makes of it, for an interface that asks for that.
    pub fn into_query(self) -> Prepared<DB> {
        self.0
    }

    /// The same, with rows that are read as a `T`.
    ///
    /// # Errors
    /// A value that can not be written.
    pub fn into_query_as<T>(mut self) -> sqlx::Result<QueryAs<'static, DB, T, DB::Arguments>>
    where
        T: for<'r> FromRow<'r, DB::Row>,
    {
        let values = self.0.take_arguments().map_err(sqlx::Error::Encode)?;
        Ok(query_as_with(self.0.sql(), values.unwrap_or_default()))
    }

    /// Runs it, and says how many rows it changed.
    ///
    /// # Errors
    /// What the database says.
    pub async fn execute(self, connection: &mut DB::Connection) -> sqlx::Result<u64> {
        Ok(DB::changed(&connection.change(self.0).await?))
    }

    /// Runs it, and gives its rows.
    ///
    /// # Errors
    /// What the database says.
    pub async fn rows(self, connection: &mut DB::Connection) -> sqlx::Result<Vec<DB::Row>> {
        connection.read(self.0).await
    }

    /// Runs it, and reads all rows.
    ///
    /// # Errors
    /// What the database says, and a row that is no `T`.
    pub async fn fetch_all<T>(self, connection: &mut DB::Connection) -> sqlx::Result<Vec<T>>
    where
        T: for<'r> FromRow<'r, DB::Row>,
    {
        let rows = self.rows(connection).await?;
        rows.iter().map(T::from_row).collect()
    }

    /// Runs it, and reads the first row.
    ///
    /// # Errors
    /// What the database says, and a row that is no `T`.
    pub async fn fetch_optional<T>(self, connection: &mut DB::Connection) -> sqlx::Result<Option<T>>
    where
        T: for<'r> FromRow<'r, DB::Row>,
    {
        let rows = self.rows(connection).await?;
        rows.first().map(T::from_row).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn placeholders_are_numbered_in_their_order() {
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
        assert_eq!(numbered("a = ? AND b = ?"), "a = $1 AND b = $2");
    }
}
