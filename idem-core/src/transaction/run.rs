//! Running a body in its savepoint, and writing down how it ended.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use sqlx::Transaction;

use super::Database;
use super::savepoint;
use crate::attempt::Attempt;
use crate::engine::core::BusyToken;
use crate::engine::run::outcome_of;
use crate::error::{Error, StoreError};
use crate::observe::{self, Outcome as Observed};
use crate::record::{self, Outcome, Settle, SettleReply, Slot, StoreTime};
use crate::results::Results;
use crate::store::sql::row::{Address, Row};

/// A body that may run.
pub(crate) struct Run(Option<Box<Held>>);

/// A key that is held by the caller's transaction.
pub(super) struct Held {
    pub(super) attempt: Attempt,
    pub(super) at: Address,
    /// How many transactions and savepoints were open with the one for the body.
    pub(super) depth: usize,
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
    pub(super) fn of(held: Held) -> Self {
        Self(Some(Box::new(held)))
    }

    /// Without a key there is nothing to record; the savepoint is there all the same.
    pub(super) fn without_key() -> Self {
        Self(None)
    }

    /// Runs the body. If it panics, or is dropped, the savepoint is dropped with it.
    pub(crate) async fn body<F: Future>(&self, body: Pin<Box<F>>) -> F::Output {
        match &self.0 {
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
        let Some(held) = self.0 else {
            observe::report(Observed::Unguarded);
            return keep(result, results, savepoint).await;
        };
        observe::report(Observed::Executed);
        let attempt = &held.attempt;
        let inner = attempt.inner();
        let outcome = outcome_of(&result, results, &inner.core, &inner.settings);
        match (result, outcome) {
            (Ok(value), outcome) => {
                match held.finish(outcome, held.before.as_ref(), savepoint).await {
                    Ok(true) => Ok(value),
                    // Also where a success stands there: a body within this one, with the same key,
                    // may have written it, and is taken back with this one.
                    Ok(false) => Err(results.refuse(Error::LeaseLost {
                        context: attempt.context(),
                    })),
                    Err(error) => Err(results.refuse(error.into())),
                }
            }
            (Err(error), outcome @ Outcome::FailedWith(_)) => {
                let reason = match held.finish_failed(outcome, savepoint).await {
                    Ok(true) => return Err(error),
                    Ok(false) => "its record is no longer as it was read".to_owned(),
                    Err(reason) => reason.to_string(),
                };
                let key = &inner.store_key;
                tracing::error!(?key, error = %reason, "an error could not be recorded; a duplicate will run again");
                Err(error)
            }
            // Whatever the error means to a store elsewhere: here nothing has happened.
            (Err(error), _) => {
                D::guard(&mut savepoint).await;
                Err(error)
            }
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
    ) -> Result<bool, StoreError> {
        let now = self.now.after(self.heard.elapsed());
        let Some(row) = self.settled(outcome, now) else {
            D::guard(&mut savepoint).await;
            return Ok(false);
        };
        let concluded = D::conclude(savepoint, self.depth, &self.at, before, &row, now).await;
        concluded.map_err(D::fault)
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

    /// The same, after what the body did was taken back.
    async fn finish_failed<D: Database>(
        &self,
        outcome: Outcome,
        mut savepoint: Transaction<'_, D>,
    ) -> Result<bool, StoreError> {
        if let Err(error) = D::back(&mut savepoint, &self.at).await {
            D::guard(&mut savepoint).await;
            return Err(D::fault(error));
        }
        self.finish(outcome, self.at_first.as_ref(), savepoint)
            .await
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
    mut savepoint: Transaction<'_, D>,
) -> Result<T, E> {
    let value = match result {
        Ok(value) => value,
        Err(error) => {
            D::guard(&mut savepoint).await;
            return Err(error);
        }
    };
    match savepoint::keep(savepoint).await {
        Ok(()) => Ok(value),
        Err(error) => Err(results.refuse(D::fault(error).into())),
    }
}
