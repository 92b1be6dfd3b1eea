//! Which migrations are to be run on what is there.

use crate::error::{StoreError, StoreErrorKind};
use crate::store::Finding;

/// The format of the tables that this build reads and writes.
pub(super) const VERSION: i64 = 1;

/// What a database says of our tables, asked under the lock of the migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tables {
    /// What `idempotent_record_version` holds; 0 if it is empty, `None` if it is not there.
    pub(super) version: Option<i64>,
    /// Whether there is a table `idempotent_record`.
    pub(super) has_records: bool,
}

/// Whether the tables are still to be created.
///
/// # Errors
/// A table of our name that is not ours, or one of a later format.
pub(super) fn is_needed(tables: Tables) -> Result<bool, StoreError> {
    is_missing(tables).map_err(|why| {
        StoreError::new(StoreErrorKind::Misconfigured, format!("sql: {why}")).before_sending()
    })
}

/// What is wrong with the tables, whatever the database.
pub(super) fn doubt(tables: Tables) -> Option<Finding> {
    let (code, detail) = match is_missing(tables) {
        Err(why) => ("unusable_tables", why),
        Ok(true) => (
            "no_tables",
            "the tables of the records are not there, so every call is refused; call migrate() once, as a user who may create them".into(),
        ),
        Ok(false) if !tables.has_records => (
            "no_tables",
            "the table idempotent_record is not there, though idempotent_record_version is, so every call is refused; drop that one, too, and call migrate()".into(),
        ),
        Ok(false) => return None,
    };
    Some(Finding { code, detail })
}

/// Whether migration would help; `Err` says why it would not.
fn is_missing(tables: Tables) -> Result<bool, String> {
    match tables {
        Tables {
            version: None,
            has_records: true,
        } => Err("there is a table idempotent_record of somebody else; move it, or give the records a schema or database of their own".into()),
        Tables {
            version: Some(version),
            ..
        } if version > VERSION => Err(format!(
            "the tables are of format {version}, and this build knows formats up to {VERSION}; use a newer build"
        )),
        Tables { version, .. } => Ok(version.unwrap_or_default() < VERSION),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(version: Option<i64>, has_records: bool) -> Option<bool> {
        is_needed(Tables {
            version,
            has_records,
        })
        .ok()
    }

    #[test]
    fn an_empty_database_and_one_left_half_way_are_migrated() {
        assert_eq!(answer(None, false), Some(true));
        assert_eq!(answer(Some(0), false), Some(true));
        assert_eq!(answer(Some(0), true), Some(true));
    }

    #[test]
    fn a_database_of_this_format_is_left_alone() {
        assert_eq!(answer(Some(VERSION), true), Some(false));
    }

    #[test]
    fn what_is_missing_or_of_somebody_else_is_a_doubt() {
        let code = |version, has_records| {
            let tables = Tables {
                version,
                has_records,
            };
            doubt(tables).map(|doubt| doubt.code)
        };
        assert_eq!(code(None, false), Some("no_tables"));
        assert_eq!(code(Some(VERSION), false), Some("no_tables"));
        assert_eq!(code(None, true), Some("unusable_tables"));
        assert_eq!(code(Some(VERSION + 1), true), Some("unusable_tables"));
        assert_eq!(code(Some(VERSION), true), None);
    }

    #[test]
    fn a_foreign_table_and_a_later_format_are_refused() {
        assert_eq!(answer(None, true), None);
        assert_eq!(answer(Some(VERSION + 1), true), None);
    }
}
