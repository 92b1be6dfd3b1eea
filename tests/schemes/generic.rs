//! Code that is generic over the database, and has names of its own.

use idem_core::sql::Database;

/// As somebody may have it: with the names that the library's own calls have inside.
trait Tool {
    fn run() -> &'static str;
    fn text() -> &'static str;
    fn insert() -> &'static str;
}

impl<DB: sqlx::Database> Tool for DB {
    fn run() -> &'static str {
        DB::NAME
    }

    fn text() -> &'static str {
        "text"
    }

    fn insert() -> &'static str {
        "insert"
    }
}

fn called<DB: Database>() -> [&'static str; 3] {
    [DB::run(), DB::text(), DB::insert()]
}

#[test]
fn names_of_the_callers_own_traits_are_free() {
    assert_eq!(called::<sqlx::Sqlite>(), ["SQLite", "text", "insert"]);
}
