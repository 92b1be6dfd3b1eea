//! The statements of a transition, for one table and one database.

use std::fmt::Write;

use super::TransitionError;
use super::names::{Names, column, table};
use crate::sql::driver::{Driven, Driver, Of, Syntax};

#[derive(Debug)]
pub(super) struct Statements {
    /// Takes the right to write, where that is not a row's.
    pub(super) lock: Option<String>,
    /// status, version, the id as text: by id, locked
    pub(super) find: String,
    /// target, version: by entity, id and event
    pub(super) event: String,
    /// The same, of what is committed now.
    pub(super) event_now: String,
    /// by entity, id and target
    pub(super) reached: String,
    /// entity, id, event, from, to, version
    pub(super) log: String,
    /// to, then by from, version and id
    pub(super) update: String,
}

impl Statements {
    pub(super) fn new<DB: Driven>(names: &Names) -> Result<Self, TransitionError> {
        let syntax = &Of::<DB>::SYNTAX;
        let table = table(syntax, &names.table)?;
        let log = self::table(syntax, &names.log)?;
        let id = column(syntax, &names.id)?;
        let status = column(syntax, &names.status)?;
        let version = column(syntax, &names.version)?;
        let Syntax {
            integer,
            for_update,
            current,
            if_new,
            ..
        } = *syntax;
        let by_event = "entity = ? AND entity_id = ? AND event = ?";
        let event = format!(
            "SELECT CAST(to_status AS {integer}), CAST(version AS {integer}) FROM {log} WHERE {by_event}"
        );
        let id_as_text = syntax.text.replace("{id}", &id);
        let text = |sql: String| parameters(syntax, &sql);
        Ok(Self {
            lock: syntax.lock_of_all.map(|lock| lock.replace("{log}", &log)),
            find: text(format!(
                "SELECT CAST({status} AS {integer}), CAST({version} AS {integer}), {id_as_text} FROM {table} WHERE {id} = ?{for_update}"
            )),
            event_now: text(format!("{event}{current}")),
            event: text(event),
            reached: text(format!(
                "SELECT CAST(version AS {integer}) FROM {log} WHERE entity = ? AND entity_id = ? AND to_status = ? LIMIT 1{current}"
            )),
            log: text(format!(
                "INSERT INTO {log} (entity, entity_id, event, from_status, to_status, version) VALUES (?, ?, ?, ?, ?, ?){if_new}"
            )),
            update: text(format!(
                "UPDATE {table} SET {status} = ?, {version} = {version} + 1 WHERE {status} = ? AND {version} = ? AND {id} = ?"
            )),
        })
    }
}

/// What makes the log where it is missing.
pub(super) fn definition<DB: Driven>(names: &Names) -> Result<String, TransitionError> {
    let log = table(&Of::<DB>::SYNTAX, &names.log)?;
    Ok(Of::<DB>::SYNTAX.log.replace("{log}", &log))
}

/// No name has a `?` in it.
fn parameters(syntax: &Syntax, sql: &str) -> String {
    if !syntax.is_numbered {
        return sql.to_owned();
    }
    let mut pieces = sql.split('?');
    let mut numbered = pieces.next().unwrap_or_default().to_owned();
    for (number, piece) in (1..).zip(pieces) {
        // Writing to a string can not fail.
        let _ = write!(numbered, "${number}{piece}");
    }
    numbered
}
