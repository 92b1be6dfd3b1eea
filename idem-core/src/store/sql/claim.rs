//! Claims, which have an answer also where somebody keeps the row locked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::dialect::Dialect;
use super::fault::Fault;
use super::held::Held;
use super::records::Records;
use super::row::{Address, Found};
use crate::driver::moment_in;
use crate::record::{self, Claim, ClaimReply, Slot};
use crate::store::{Answer, Answered, StoreKey};

/// When to ask again for a row of which only its lock is known.
const SOON: Duration = Duration::from_secs(1);

impl<D: Dialect> Records<D> {
    pub(super) async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
        let at = Arc::new(Address::of(key));
        let claim = |slot, now| record::claim(slot, op, now);
        self.within_limit(|| async {
            let until = moment_in(self.wait());
            // Boxed, like what is rare: a claim's future is large enough.
            if op.token.is_some()
                && let Some(rejected) = Box::pin(self.rejected(&at, op, until)).await?
            {
                return Ok(Some(rejected));
            }
            match self.write_once(&at, until, claim).await {
                Err(fault) if fault.is_locked() => {
                    Box::pin(self.beside_a_lock(&at, op, fault)).await
                }
                answer => answer,
            }
        })
        .await
    }

    /// What is committed at `at`, whoever has it locked.
    pub(super) async fn committed(
        &self,
        at: &Arc<Address>,
        patience: Duration,
    ) -> Result<Found, Fault> {
        let read = |mut held: Held<D>| {
            let at = Arc::clone(at);
            async move {
                let found = D::read(held.connection()?, &at).await;
                held.after(found)
            }
        };
        self.read_once(patience, read).await
    }

    /// What a wrong token is told, without a lock that somebody else may have.
    async fn rejected(
        &self,
        at: &Arc<Address>,
        op: &Claim,
        until: Instant,
    ) -> Result<Option<Answer<ClaimReply>>, Fault> {
        let committed = self.committed(at, self.wait());
        let Ok(committed) = tokio::time::timeout_at(until.into(), committed).await else {
            return Err(self.silent().await);
        };
        let seen = answered(&committed.map_err(Fault::before_commit)?, op);
        Ok((seen.reply == ClaimReply::TokenRejected).then_some(seen))
    }

    /// What is told while somebody's transaction has the row. Nothing is granted here.
    async fn beside_a_lock(
        &self,
        at: &Arc<Address>,
        op: &Claim,
        fault: Fault,
    ) -> Result<Option<Answer<ClaimReply>>, Fault> {
        let patience = self.limit() / 20;
        let committed = self.committed(at, patience);
        let Ok(Ok(found)) = tokio::time::timeout(patience, committed).await else {
            return Err(fault);
        };
        // Its own earlier send may have been granted.
        if is_own(&found, op) {
            return Err(fault);
        }
        let mut answer = answered(&found, op);
        // Also where the attempt is abandoned: whoever has the lock may be about to end it.
        if matches!(
            answer.reply,
            ClaimReply::Claimed(_) | ClaimReply::OutcomeUnknown
        ) {
            // A lock on everything says nothing of this key.
            if D::IS_LOCKED_AS_A_WHOLE {
                return Err(fault);
            }
            answer.reply = ClaimReply::InProgress {
                since: answer.now,
                lease_left: SOON,
            };
        }
        Ok(Some(answer))
    }
}

fn answered(found: &Found, op: &Claim) -> Answer<ClaimReply> {
    let (_, reply) = record::claim(found.slot(), op, found.now);
    Answer {
        now: found.now,
        reply,
    }
}

fn is_own(found: &Found, op: &Claim) -> bool {
    matches!(found.slot(), Slot::Record(record) if record.owner == op.owner)
}
