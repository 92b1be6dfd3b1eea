//! Which migrations are to be run on what is there.

use crate::error::{StoreError, StoreErrorKind};

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
    match tables {
        Tables {
            version: None,
            has_records: true,
        } => Err(refused(
            "there is a table idempotent_record of somebody else; move it, or give the records a schema or database of their own",
        )),
        Tables {
            version: Some(version),
            ..
        } if version > VERSION => Err(refused(format!(
            "the tables are of format {version}, and this build knows formats up to {VERSION}; use a newer build"
        ))),
        Tables { version, .. } => Ok(version.unwrap_or_default() < VERSION),
    }
}

fn refused(detail: impl Into<String>) -> StoreError {
    let detail = format!("sql: {}", detail.into());
    StoreError::new(StoreErrorKind::Misconfigured, detail).before_sending()
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
    fn a_foreign_table_and_a_later_format_are_refused() {
        assert_eq!(answer(None, true), None);
        assert_eq!(answer(Some(VERSION + 1), true), None);
    }
}
