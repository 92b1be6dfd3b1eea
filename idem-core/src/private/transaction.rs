//! What generated code calls for a function with `tx`.

use std::future::Future;
use std::pin::Pin;

use sqlx::Transaction;

use super::Call;
use crate::key::KeyBuilder;
use crate::results::Results;
use crate::transaction::{self, Database, Run as Running};

/// The connection of the argument that `tx` names. By its plain type, and not by a trait, so that a
/// wrong argument is one error, where the user wrote its type.
pub fn opened<'t, D: Database>(tx: &'t mut Transaction<'_, D>) -> &'t mut D::Connection {
    tx
}

/// Whether the body may run.
#[derive(Debug)]
pub enum Admitted<'t, T, E, D: Database> {
    /// No: this is the caller's answer, and how deep in transactions it was.
    Answer(Result<T, E>, usize),
    /// Yes, in this savepoint; and the same.
    Run(Run<T, E>, Transaction<'t, D>, usize),
}

/// A body that may run.
pub struct Run<T, E> {
    run: Running,
    results: Results<T, E>,
}

impl<T, E> std::fmt::Debug for Run<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Asks whether the body of `call` may run for `key`, in a savepoint of the transaction on
/// `connection`.
pub async fn admit<T, E, C, D>(
    call: Call<T, E>,
    key: KeyBuilder,
    connection: &mut C,
) -> Admitted<'_, T, E, D>
where
    C: sqlx::Connection<Database = D>,
    D: Database<Connection = C>,
{
    let before = transaction::level::<D>(connection).await;
    // Boxed, so that an annotated function's future grows by a pointer and not by all of this.
    match Box::pin(ask(&call, key, connection)).await {
        Ok((run, savepoint)) => {
            let results = call.results;
            Admitted::Run(Run { run, results }, savepoint, before)
        }
        Err(answer) => Admitted::Answer(answer, before),
    }
}

async fn ask<'t, T, E, D: Database>(
    call: &Call<T, E>,
    key: KeyBuilder,
    connection: &'t mut D::Connection,
) -> Result<(Running, Transaction<'t, D>), Result<T, E>> {
    let refused = |error| Err(call.results.refused(error));
    let (engine, fingerprint) = call.checked().map_err(refused)?;
    let key = key.finish();
    transaction::admit(
        &engine,
        key,
        call.policy,
        call.results,
        fingerprint,
        connection,
    )
    .await
}

/// After an error: sees to it that the caller's transaction is one, as deep as `before`.
pub async fn restore<T, E, C, D>(
    connection: &mut C,
    before: usize,
    answer: Result<T, E>,
) -> Result<T, E>
where
    C: sqlx::Connection<Database = D>,
    D: Database<Connection = C>,
{
    if answer.is_err() {
        transaction::restore::<D>(connection, before).await;
    }
    answer
}

impl<T, E> Run<T, E> {
    /// Runs the body.
    pub async fn body<F>(&self, body: Pin<Box<F>>) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        Box::pin(self.run.body(body)).await
    }

    /// Keeps what the body did, with its record, or takes it back.
    pub async fn settle<D: Database>(
        self,
        result: Result<T, E>,
        savepoint: Transaction<'_, D>,
    ) -> Result<T, E> {
        Box::pin(self.run.settle(result, self.results, savepoint)).await
    }
}
