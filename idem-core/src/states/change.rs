//! One event, on its way through the statements.

use super::answer::{Case, Logged, refusal};
use super::statements::Statements;
use super::{Answer, States, TransitionError};
use crate::sql::driver::{Driver, Of, Text, add};
use crate::sql::{Database, SqlError};

/// What is asked.
pub(super) struct Request<'a, S> {
    pub(super) entity: &'a str,
    /// The table of the events.
    pub(super) log: &'a str,
    pub(super) event: &'a str,
    pub(super) to: S,
    pub(super) expected: Option<i64>,
}

/// The row as it was read under the lock.
struct Entity<S, T> {
    status: S,
    version: i64,
    id: T,
}

pub(super) struct Change<'a, DB: Database, S> {
    pub(super) connection: &'a mut DB::Connection,
    pub(super) statements: Statements,
    pub(super) request: Request<'a, S>,
}

impl<DB: Database, S: States> Change<'_, DB, S> {
    /// Whether the log can be read as of an older snapshot, although the row is locked and read as
    /// it is now. An insert finds out by itself; before a refusal the log is read once more. It is
    /// not read so at once: where nothing is found, that would lock the gap, and two events of
    /// different rows would wait for each other.
    const MAY_READ_THE_PAST: bool = !Of::<DB>::SYNTAX.current.is_empty();

    pub(super) async fn make<I>(mut self, id: &I) -> Result<Answer<S>, TransitionError>
    where
        I: for<'q> sqlx::Encode<'q, DB> + sqlx::Type<DB> + Sync,
    {
        let Some(entity) = self.find(id).await? else {
            return Ok(Answer::NotFound);
        };
        let mut logged = self.logged(&entity, false).await?;
        if logged.is_none() && Self::MAY_READ_THE_PAST && !self.may_apply(&entity) {
            logged = self.logged(&entity, true).await?;
        }
        if let Some(answer) = self.refusal(&entity, logged).await? {
            return Ok(answer);
        }
        if !self.log(&entity).await? {
            let logged = self.logged(&entity, true).await?;
            let answer = self.refusal(&entity, logged).await?;
            return answer.ok_or(TransitionError::NotOneRow);
        }
        self.update(&entity, id).await?;
        Ok(Answer::Applied {
            from: entity.status,
            version: entity.version + 1,
        })
    }

    async fn find<I>(&mut self, id: &I) -> Result<Option<Entity<S, Text<DB>>>, TransitionError>
    where
        I: for<'q> sqlx::Encode<'q, DB> + sqlx::Type<DB> + Sync,
    {
        if let Some(lock) = self.statements.lock.take() {
            let locked = Of::<DB>::run(self.connection, lock, DB::Arguments::default()).await;
            locked.map_err(|error| self.fault_of_log(error))?;
        }
        let mut arguments = DB::Arguments::default();
        add(&mut arguments, id).map_err(fault::<DB>)?;
        let find = self.statements.find.clone();
        let rows = Of::<DB>::rows(self.connection, find, arguments).await;
        let rows = rows.map_err(fault::<DB>)?;
        let row = match &rows[..] {
            [] => return Ok(None),
            [row] => row,
            _ => return Err(TransitionError::NotOneRow),
        };
        let code = Of::<DB>::number(row, 0).map_err(fault::<DB>)?;
        let status = i16::try_from(code).ok().and_then(S::from_code);
        let id = Of::<DB>::text(row, 2).map_err(fault::<DB>)?;
        fits("the id of the row", id.as_ref())?;
        Ok(Some(Entity {
            status: status.ok_or(TransitionError::UnknownStatus { code })?,
            version: Of::<DB>::number(row, 1).map_err(fault::<DB>)?,
            id,
        }))
    }

    fn may_apply(&self, entity: &Entity<S, Text<DB>>) -> bool {
        refusal(&self.case(entity, None, false)).is_none()
    }

    async fn refusal(
        &mut self,
        entity: &Entity<S, Text<DB>>,
        logged: Option<Logged>,
    ) -> Result<Option<Answer<S>>, TransitionError> {
        let is_open = logged.is_none() && !entity.status.can_become(self.request.to);
        let is_reached = is_open && self.is_reached(entity).await?;
        Ok(refusal(&self.case(entity, logged, is_reached)))
    }

    fn case(
        &self,
        entity: &Entity<S, Text<DB>>,
        logged: Option<Logged>,
        is_reached: bool,
    ) -> Case<S> {
        Case {
            to: self.request.to,
            expected: self.request.expected,
            current: entity.status,
            version: entity.version,
            logged,
            is_reached,
        }
    }

    /// The event's entry in the log; `now` reads what is committed, whatever this transaction has
    /// read before.
    async fn logged(
        &mut self,
        entity: &Entity<S, Text<DB>>,
        now: bool,
    ) -> Result<Option<Logged>, TransitionError> {
        let mut arguments = self.key(entity)?;
        Of::<DB>::add_str(&mut arguments, self.request.event).map_err(fault::<DB>)?;
        let statements = &self.statements;
        let statement = if now {
            &statements.event_now
        } else {
            &statements.event
        };
        let rows = self.events(statement.clone(), arguments).await?;
        let read = |row: &DB::Row| {
            Ok(Logged {
                to: Of::<DB>::number(row, 0)?,
                version: Of::<DB>::number(row, 1)?,
            })
        };
        rows.first().map(read).transpose().map_err(fault::<DB>)
    }

    async fn is_reached(&mut self, entity: &Entity<S, Text<DB>>) -> Result<bool, TransitionError> {
        let mut arguments = self.key(entity)?;
        let to = self.request.to.code().into();
        Of::<DB>::add_number(&mut arguments, to).map_err(fault::<DB>)?;
        let statement = self.statements.reached.clone();
        Ok(!self.events(statement, arguments).await?.is_empty())
    }

    /// Says `false` if the event is there already.
    async fn log(&mut self, entity: &Entity<S, Text<DB>>) -> Result<bool, TransitionError> {
        let mut arguments = self.key(entity)?;
        Of::<DB>::add_str(&mut arguments, self.request.event).map_err(fault::<DB>)?;
        let (from, to) = (entity.status.code(), self.request.to.code());
        for number in [from.into(), to.into(), entity.version + 1] {
            Of::<DB>::add_number(&mut arguments, number).map_err(fault::<DB>)?;
        }
        let statement = self.statements.log.clone();
        let inserted = Of::<DB>::rows(self.connection, statement, arguments).await;
        Of::<DB>::is_new(inserted).map_err(|error| self.fault_of_log(error))
    }

    async fn update<I>(
        &mut self,
        entity: &Entity<S, Text<DB>>,
        id: &I,
    ) -> Result<(), TransitionError>
    where
        I: for<'q> sqlx::Encode<'q, DB> + sqlx::Type<DB> + Sync,
    {
        let mut arguments = DB::Arguments::default();
        let (from, to) = (entity.status.code(), self.request.to.code());
        for number in [to.into(), from.into(), entity.version] {
            Of::<DB>::add_number(&mut arguments, number).map_err(fault::<DB>)?;
        }
        add(&mut arguments, id).map_err(fault::<DB>)?;
        // It was decided by what was read; this only finds out whether somebody interferes.
        let update = self.statements.update.clone();
        let updated = Of::<DB>::run(self.connection, update, arguments).await;
        match updated.map_err(fault::<DB>)? {
            1 => Ok(()),
            _ => Err(TransitionError::NotOneRow),
        }
    }

    fn key(&self, entity: &Entity<S, Text<DB>>) -> Result<DB::Arguments, TransitionError> {
        let mut arguments = DB::Arguments::default();
        Of::<DB>::add_str(&mut arguments, self.request.entity)
            .and_then(|()| Of::<DB>::add_text(&mut arguments, &entity.id))
            .map_err(fault::<DB>)?;
        Ok(arguments)
    }

    /// Rows of the log.
    async fn events(
        &mut self,
        statement: String,
        arguments: DB::Arguments,
    ) -> Result<Vec<DB::Row>, TransitionError> {
        let events = Of::<DB>::rows(self.connection, statement, arguments).await;
        events.map_err(|error| self.fault_of_log(error))
    }

    /// What an error means of a statement that touches the log alone.
    fn fault_of_log(&self, error: sqlx::Error) -> TransitionError {
        match error.as_database_error() {
            Some(said) if (Of::<DB>::SYNTAX.is_no_table)(said) => TransitionError::NoLog {
                log: self.request.log.to_owned(),
                source: error,
            },
            _ => fault::<DB>(error),
        }
    }
}

fn fault<DB: Database>(error: sqlx::Error) -> TransitionError {
    SqlError::of::<DB>(error).into()
}

/// A text that a column of the log takes whole, in each database.
pub(super) fn fits(what: &'static str, id: &[u8]) -> Result<(), TransitionError> {
    const LONGEST: usize = 255;
    let is_blank = id.iter().all(u8::is_ascii_whitespace);
    if is_blank || id.len() > LONGEST {
        return Err(TransitionError::InvalidId {
            what: what.into(),
            length: id.len(),
        });
    }
    Ok(())
}
