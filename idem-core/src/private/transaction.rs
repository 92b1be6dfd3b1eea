//! What generated code calls for a function with `tx`.

use std::future::Future;
use std::pin::Pin;

use sqlx::Transaction;

use super::Call;
use crate::key::KeyBuilder;
use crate::results::Results;
use crate::transaction::{self, Database, Run as Running};

/// A transaction that the guard can borrow.
#[diagnostic::on_unimplemented(
    message = "`tx` has to be an open transaction of its caller: `&mut sqlx::Transaction<'_, DB>`",
    label = "the guard can not open a savepoint in `{Self}`",
    note = "`DB` is `sqlx::Postgres`, `sqlx::MySql` or `sqlx::Sqlite`, with the feature of that name of `idem-core`"
)]
pub trait Opened<'t> {
    /// Which database it is.
    type Database: Database;

    /// Its connection.
    fn connection(self) -> &'t mut <Self::Database as sqlx::Database>::Connection;
}

impl<'t, D: Database> Opened<'t> for &'t mut Transaction<'_, D> {
    type Database = D;

    fn connection(self) -> &'t mut D::Connection {
        &mut *self
    }
}

/// The argument that `tx` names, checked where the user wrote its type.
pub fn opened<'t, X: Opened<'t>>(tx: X) -> &'t mut <X::Database as sqlx::Database>::Connection {
    tx.connection()
}

/// Whether the body may run.
#[derive(Debug)]
pub enum Admitted<'t, T, E, D: Database> {
    /// No: this is the caller's answer.
    Answer(Result<T, E>),
    /// Yes, in this savepoint.
    Run(Run<T, E>, Transaction<'t, D>),
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
    // Boxed, so that an annotated function's future grows by a pointer and not by all of this.
    match Box::pin(ask(&call, key, connection)).await {
        Ok((run, savepoint)) => {
            let results = call.results;
            Admitted::Run(Run { run, results }, savepoint)
        }
        Err(answer) => Admitted::Answer(answer),
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
