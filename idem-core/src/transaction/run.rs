//! Running a body in its savepoint, and writing down how it ended.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use sqlx::Transaction;

use super::Database;
use super::savepoint;
use crate::attempt::Attempt;
use crate::engine::core::BusyToken;
use crate::engine::run::outcome_of;
use crate::error::{Context, Error, StoreError, StoreErrorKind};
use crate::observe::{self, Outcome as Observed};
use crate::record::{self, Outcome, Settle, SettleReply, Slot, StoreTime};
use crate::results::Results;
use crate::store::sql::row::{Address, Row};
use crate::store::sql::within::Began;

/// A body that may run.
pub(crate) struct Run {
    /// Without a key there is nothing to record; the savepoint is there all the same.
    held: Option<Box<Held>>,
    /// How many transactions and savepoints were open with the one for the body.
    depth: usize,
}

/// A key that is held by the caller's transaction.
pub(super) struct Held {
    pub(super) attempt: Attempt,
    pub(super) at: Address,
    /// The transaction that holds it.
    pub(super) began: Began,
    /// What stands in the table, as this transaction sees it.
    pub(super) before: Option<Row>,
    /// What stands there again after what the body did was taken back.
    pub(super) at_first: Option<Row>,
    /// What the claim made of it.
    pub(super) slot: Slot,
    /// The database's time when the key was read, and when that was heard.
    pub(super) now: StoreTime,
    pub(super) heard: Instant,
    pub(super) _busy: BusyToken,
}

impl Run {
    pub(super) fn of(held: Held, depth: usize) -> Self {
        let held = Some(Box::new(held));
        Self { held, depth }
    }

    pub(super) fn without_key(depth: usize) -> Self {
        Self { held: None, depth }
    }

    /// Runs the body. If it panics, or is dropped, the savepoint is dropped with it.
    pub(crate) async fn body<F: Future>(&self, body: Pin<Box<F>>) -> F::Output {
        match &self.held {
            Some(held) => held.attempt.scope(body).await,
            None => Attempt::scope_of_none(body).await,
        }
    }

    /// Keeps what the body did, with its record, or takes it back.
    pub(crate) async fn settle<T, E, D: Database>(
        self,
        result: Result<T, E>,
        results: Results<T, E>,
        mut savepoint: Transaction<'_, D>,
    ) -> Result<T, E> {
        let level = D::level(&mut savepoint).await;
        if level != self.depth {
            return self.astray(level, result, results, savepoint).await;
        }
        let depth = self.depth;
        let Some(held) = self.held else {
            observe::report(Observed::Unguarded);
            return keep(result, results, savepoint, depth).await;
        };
        observe::report(Observed::Executed);
        let attempt = &held.attempt;
        let inner = attempt.inner();
        let outcome = outcome_of(&result, results, &inner.core, &inner.settings);
        match (result, outcome) {
            (Ok(value), outcome) => {
                match held
                    .finish(outcome, held.before.as_ref(), savepoint, depth)
                    .await
                {
                    Ok(true) => Ok(value),
                    // Also where a success stands there: a body within this one, with the same key,
                    // may have written it, and is taken back with this one.
                    Ok(false) => Err(results.refuse(Error::LeaseLost {
                        context: attempt.context(),
                    })),
                    Err(error) => Err(results.refuse(unkept::<D>(Some(attempt.context()), error))),
                }
            }
            (Err(error), outcome @ Outcome::FailedWith(_)) => {
                if let Err(reason) = D::back(&mut savepoint, &held.at).await {
                    held.is_not_recorded(&D::fault(reason));
                    return held.failed(error, results, savepoint, depth).await;
                }
                let before = held.at_first.as_ref();
                match held.finish(outcome, before, savepoint, depth).await {
                    Ok(true) => {}
                    Ok(false) => held.is_not_recorded(&"its record is no longer as it was read"),
                    Err(reason) => held.is_not_recorded(&D::fault(reason)),
                }
                Err(error)
            }
            // Whatever the error means to a store elsewhere: here nothing has happened.
            (Err(error), _) => held.failed(error, results, savepoint, depth).await,
        }
    }

    /// A body that has left its savepoint, by one of its own that it did not end or that sqlx ended
    /// together with this one. What is open is taken back. What it did in no transaction at all was
    /// committed statement by statement.
    async fn astray<T, E, D: Database>(
        self,
        level: usize,
        result: Result<T, E>,
        results: Results<T, E>,
        mut savepoint: Transaction<'_, D>,
    ) -> Result<T, E> {
        let context = self.held.as_ref().map(|held| held.attempt.context());
        observe::report(match context {
            Some(_) => Observed::Executed,
            None => Observed::Unguarded,
        });
        tracing::error!(
            ?context,
            level,
            depth = self.depth,
            "the body left its savepoint: a `begin` of its own failed, was dropped, or was not ended"
        );
        let is_gone = D::guard_body(&mut savepoint, self.depth, level).await;
        savepoint::take_back(savepoint, self.depth, level).await;
        match result {
            Ok(_) if is_gone || level == 0 => Err(results.refuse(unknown(context))),
            Ok(_) => Err(results.refuse(left().into())),
            Err(error) => Err(error),
        }
    }
}

impl Held {
    /// Writes the record as it ends and lets the savepoint go; says `false`, and leaves it to be
    /// rolled back, if the record is not as it was read.
    async fn finish<D: Database>(
        &self,
        outcome: Outcome,
        before: Option<&Row>,
        mut savepoint: Transaction<'_, D>,
        depth: usize,
    ) -> sqlx::Result<bool> {
        let now = self.now.after(self.heard.elapsed());
        let Some(row) = self.settled(outcome, now) else {
            D::guard(&mut savepoint).await;
            return Ok(false);
        };
        D::conclude(savepoint, depth, &self.at, self.began, before, &row, now).await
    }

    fn settled(&self, outcome: Outcome, now: StoreTime) -> Option<Row> {
        let settle = self.settlement(outcome);
        match record::settle(self.kept_until(now), &settle, now) {
            (Slot::Record(record), SettleReply::Settled) => Some(Row::of(&record)),
            _ => None,
        }
    }

    /// What the claim made, for a body that took longer than a record lives: the key is held by the
    /// transaction, and by no time.
    fn kept_until(&self, now: StoreTime) -> Slot {
        match self.slot.clone() {
            Slot::Record(mut record) => {
                let just_after = now.after(Duration::from_millis(1)).ceil_millis();
                record.expires_at = record.expires_at.max(just_after);
                Slot::Record(record)
            }
            slot => slot,
        }
    }

    fn is_not_recorded(&self, reason: &dyn Display) {
        let key = &self.attempt.inner().store_key;
        tracing::error!(?key, error = %reason, "an error could not be recorded; a duplicate will run again");
    }

    async fn failed<T, E, D: Database>(
        &self,
        error: E,
        results: Results<T, E>,
        savepoint: Transaction<'_, D>,
        depth: usize,
    ) -> Result<T, E> {
        let context = Some(self.attempt.context());
        failed(error, results, savepoint, (depth, self.began), context).await
    }

    /// Without an echo: what a database lost, it lost with the effects.
    fn settlement(&self, outcome: Outcome) -> Settle {
        Settle {
            not_after: StoreTime::from_micros(u64::MAX),
            echo: None,
            ..self.attempt.settlement(outcome)
        }
    }
}

async fn keep<T, E, D: Database>(
    result: Result<T, E>,
    results: Results<T, E>,
    savepoint: Transaction<'_, D>,
    depth: usize,
) -> Result<T, E> {
    let value = match result {
        Ok(value) => value,
        Err(error) => return failed(error, results, savepoint, (depth, None), None).await,
    };
    match D::keep(savepoint, depth).await {
        Ok(()) => Ok(value),
        Err(error) => Err(results.refuse(unkept::<D>(None, error))),
    }
}

/// What a body did is taken back, and its error returned; unless its transaction is no more.
async fn failed<T, E, D: Database>(
    error: E,
    results: Results<T, E>,
    mut savepoint: Transaction<'_, D>,
    (depth, began): (usize, Began),
    context: Option<Context>,
) -> Result<T, E> {
    match D::guard_failed(&mut savepoint, depth, began).await {
        Err(gone) if D::is_gone(&gone) => Err(results.refuse(unkept::<D>(context, gone))),
        _ => Err(error),
    }
}

/// What it means that the end of a body could not be kept.
fn unkept<D: Database>(context: Option<Context>, error: sqlx::Error) -> Error {
    if D::is_gone(&error) {
        tracing::error!(?context, %error, "the body ended its caller's transaction: nobody knows what of it is kept");
        return unknown(context);
    }
    D::fault(error).into()
}

/// Without a key there is no request to look up.
fn unknown(context: Option<Context>) -> Error {
    let Some(context) = context else {
        let ended = "sql: the body ended its caller's transaction; what of it is kept is not known";
        return StoreError::new(StoreErrorKind::Misconfigured, ended).into();
    };
    Error::OutcomeUnknown { context }
}

/// Nobody was in the way: the same body does it again.
fn left() -> StoreError {
    StoreError::new(
        StoreErrorKind::Protocol,
        "sql: the body left its savepoint, and all it did was taken back; roll back",
    )
    .before_sending()
}
