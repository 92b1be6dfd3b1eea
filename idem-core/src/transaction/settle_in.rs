//! Settling an attempt in lease mode together with its effects.

use serde::Serialize;
use sqlx::Transaction;

use super::Database;
use super::savepoint::{self, level, restore};
use crate::attempt::Attempt;
use crate::codec::{Codec, Json};
use crate::engine::run::success;
use crate::error::Error;
use crate::policy::invalid;
use crate::record::{self, Record, Settle, SettleReply, Slot, StoreTime};
use crate::store::sql::row::{Address, Found, Row};
use crate::store::sql::within::{Began, Entered, depth};

impl Attempt {
    /// Settles this attempt, in lease mode, within `tx`: its effects and its success commit
    /// together. `tx` has to be a transaction of the database in which the engine keeps its
    /// records. Call it last, commit, and return `value` from the body; the engine then finds its
    /// attempt settled.
    ///
    /// From here on the lease is not renewed. On PostgreSQL begin `tx` at READ COMMITTED: at a higher
    /// level each renewal, three in a lease, is a change since its snapshot, and a transaction that is
    /// older than one can not settle (40001).
    ///
    /// **After a rollback, or a commit that failed, return an error from the body**; the record then
    /// ends as `on_error` says. `Ok` would record a success whose effects were rolled back.
    ///
    /// `value` is written as the default codec writes it, whatever the function's results say. So it
    /// is for results that are stored by that codec: not for one of another `codec`, and not for one
    /// that is not stored.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if the record is no longer this attempt's, or is not in the database of
    /// `tx`: **roll back**, somebody else may have done it. [`Error::Store`] if the database did not
    /// take it, or had it changed since the snapshot of `tx`: roll back, too.
    /// [`Error::InvalidPolicy`] in a body with `tx`, whose record is in the transaction anyway.
    ///
    /// # Cancel safety
    /// Dropped, nothing of it is left in `tx`; roll that back.
    pub async fn settle_in<T, D>(&self, tx: &mut Transaction<'_, D>, value: &T) -> Result<(), Error>
    where
        T: Serialize + ?Sized,
        D: Database,
    {
        if self.is_in_transaction() {
            return Err(invalid(
                "this attempt's record is in the transaction of its caller, and is settled there",
            ));
        }
        let inner = self.inner();
        inner.core.heartbeats.leave(self).await;
        let encode = || Some(Json::encode(value).map(Into::into));
        let settle = Settle {
            not_after: StoreTime::from_micros(u64::MAX),
            ..self.settlement(success(&inner.core, &inner.settings, encode))
        };
        let before = level::<D>(tx).await;
        let settled = self.settle_on::<D>(tx, &settle).await;
        restore::<D>(tx, before).await;
        if settled.is_ok() {
            self.note_settled_in();
        }
        settled
    }

    async fn settle_on<D: Database>(
        &self,
        connection: &mut D::Connection,
        settle: &Settle,
    ) -> Result<(), Error> {
        let mut savepoint = savepoint::open::<D>(connection).await.map_err(D::fault)?;
        let depth = depth::<D>(&savepoint);
        let at = Address::of(&self.inner().store_key);
        let (found, began, record) =
            match self.settled_within::<D>(&mut savepoint, &at, settle).await {
                Ok(settled) => settled,
                Err(error) => {
                    D::guard(&mut savepoint).await;
                    return Err(error);
                }
            };
        let (before, after) = (found.row.as_ref(), Row::of(&record));
        let concluded = D::conclude(savepoint, depth, &at, began, before, &after, found.now).await;
        if concluded.map_err(D::fault)? {
            Ok(())
        } else {
            Err(Error::LeaseLost {
                context: self.context(),
            })
        }
    }

    /// What stands there, and what this makes of it.
    async fn settled_within<D: Database>(
        &self,
        connection: &mut D::Connection,
        at: &Address,
        settle: &Settle,
    ) -> Result<(Found, Began, Record), Error> {
        let patience = self.inner().settings.terms.limit;
        let entered = D::enter(connection, at, patience, false).await;
        let Entered { found, began, .. } = entered.map_err(D::fault)?;
        let context = self.context();
        match record::settle(found.slot(), settle, found.now) {
            (Slot::Record(record), SettleReply::Settled) => Ok((found, began, record)),
            (_, SettleReply::Damaged) => Err(Error::Damaged { context }),
            // A record that is not there may be in another store, and somebody else's.
            _ => Err(Error::LeaseLost { context }),
        }
    }
}
