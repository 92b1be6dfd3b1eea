//! Names of tables and columns, which can not be parameters of a statement.

use std::borrow::Cow;

use super::TransitionError;
use crate::sql::driver::Syntax;

type Name = Cow<'static, str>;

/// What PostgreSQL keeps of a name; it cuts longer ones silently.
const LONGEST: usize = 63;

/// The column of the status, unless another is named.
pub(super) const STATUS: &str = "status";

#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) table: Name,
    pub(super) log: Name,
    pub(super) id: Name,
    pub(super) status: Name,
    pub(super) version: Name,
}

impl Names {
    /// What the log calls the rows. Two columns of states in one table are two machines, which the same
    /// event may drive. No name has a `:` in it, so that this is no other table's.
    pub(super) fn entity(&self) -> Cow<'_, str> {
        if self.status == STATUS {
            Cow::Borrowed(&self.table)
        } else {
            Cow::Owned(format!("{}:{}", self.table, self.status))
        }
    }
}

/// A table, or a schema and a table.
pub(super) fn table(syntax: &Syntax, name: &str) -> Result<String, TransitionError> {
    match name.split_once('.') {
        Some((schema, table)) => Ok(format!(
            "{}.{}",
            quoted(syntax, schema, name)?,
            quoted(syntax, table, name)?
        )),
        None => quoted(syntax, name, name),
    }
}

pub(super) fn column(syntax: &Syntax, name: &str) -> Result<String, TransitionError> {
    quoted(syntax, name, name)
}

/// Quoted, so that `order` is a table as good as any; nothing that could end the quotes gets by.
fn quoted(syntax: &Syntax, part: &str, whole: &str) -> Result<String, TransitionError> {
    let is_plain = |char: char| char.is_alphanumeric() || char == '_';
    if part.is_empty() || part.len() > LONGEST || !part.chars().all(is_plain) {
        return Err(TransitionError::InvalidName {
            name: whole.to_owned(),
        });
    }
    let quote = syntax.quote;
    Ok(format!("{quote}{part}{quote}"))
}
