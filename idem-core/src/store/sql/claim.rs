//! Claims, which have an answer also where somebody keeps the row locked.

use std::sync::Arc;
use std::time::Duration;

use super::dialect::Dialect;
use super::fault::Fault;
use super::records::Records;
use super::row::{Address, Found};
use crate::record::{self, Claim, ClaimReply, Slot};
use crate::store::{Answer, Answered, StoreKey};

/// When to ask again for a row of which only its lock is known.
const SOON: Duration = Duration::from_secs(1);

impl<D: Dialect> Records<D> {
    pub(super) async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
        let at = Arc::new(Address::of(key));
        if op.token.is_some() {
            // Boxed, like what is rare: a claim's future is large enough.
            let seen = answered(&Box::pin(self.committed(&at)).await?, op);
            if seen.reply == ClaimReply::TokenRejected {
                return Ok(seen);
            }
        }
        let claim = |slot, now| record::claim(slot, op, now);
        self.within_limit(|| async {
            match self.write_once(&at, claim).await {
                Err(fault) if fault.is_locked() => {
                    Box::pin(self.beside_a_lock(&at, op, fault)).await
                }
                answer => answer,
            }
        })
        .await
    }

    /// What is told while somebody's transaction has the row. Nothing is granted here.
    async fn beside_a_lock(
        &self,
        at: &Arc<Address>,
        op: &Claim,
        fault: Fault,
    ) -> Result<Option<Answer<ClaimReply>>, Fault> {
        let committed = tokio::time::timeout(self.limit() / 20, self.committed(at)).await;
        let Ok(Ok(found)) = committed else {
            return Err(fault);
        };
        // Its own earlier send may have been granted.
        if is_own(&found, op) {
            return Err(fault);
        }
        let mut answer = answered(&found, op);
        if matches!(answer.reply, ClaimReply::Claimed(_)) {
            // A lock on everything says nothing of this key.
            if D::WRITERS == 1 {
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
