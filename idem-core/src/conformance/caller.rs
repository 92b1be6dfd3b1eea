//! Somebody who runs an attempt, as an engine would: with a fresh `not_after` for each send and an
//! echo of what was answered.

use bytes::Bytes;

use super::Harness;
use super::trial::{Stop, Trial};
use crate::record::{
    Claim, ClaimReply, Echo, Fence, Grant, OnAbandoned, Outcome, Renew, RenewReply, Settle,
    SettleReply, StoreTime,
};
use crate::store::StoreKey;

pub(super) struct Caller<'t, 'a, H: Harness> {
    trial: &'t Trial<'a, H>,
    pub(super) key: StoreKey,
    /// What it claims with; its `not_after` is set at each send.
    pub(super) claim: Claim,
    pub(super) echo: Echo,
}

impl<'t, 'a, H: Harness> Caller<'t, 'a, H> {
    pub(super) fn new(trial: &'t Trial<'a, H>, key: &StoreKey) -> Self {
        let claim = Claim {
            owner: trial.owner(),
            terms: trial.long(),
            fingerprint: None,
            policy: OnAbandoned::Hold,
            checkpoint: true,
            token: None,
            recover: false,
            wait: false,
            not_after: StoreTime::default(),
        };
        Self {
            trial,
            key: key.clone(),
            claim,
            echo: knows_nothing(),
        }
    }

    /// The same caller with another claim.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Claim)) -> Self {
        change(&mut self.claim);
        self
    }

    /// The same attempt, as if its record had been at a key where there is nothing now.
    pub(super) fn moved_to(mut self, key: &StoreKey) -> Self {
        self.key = key.clone();
        self
    }

    pub(super) async fn claim(&mut self) -> Result<ClaimReply, Stop> {
        let op = Claim {
            not_after: self.trial.within(self.claim.terms.limit),
            ..self.claim.clone()
        };
        let reply = self.trial.claim(&self.key, &op).await?;
        match reply {
            ClaimReply::Late => return Err(Stop::TooSlow),
            ClaimReply::Claimed(grant) => {
                self.echo = Echo {
                    answered: self.trial.heard(),
                    grant,
                    checkpoint: op.checkpoint || (op.recover && grant.doubt),
                    policy: op.policy,
                    fingerprint: op.fingerprint,
                };
            }
            _ => {}
        }
        Ok(reply)
    }

    /// Claims what has to be granted.
    pub(super) async fn granted(&mut self) -> Result<Grant, Stop> {
        match self.claim().await? {
            ClaimReply::Claimed(grant) => Ok(grant),
            other => panic!("the claim was not granted: {other:?}"),
        }
    }

    pub(super) fn renewal(&self, checkpoint: bool) -> Renew {
        Renew {
            owner: self.claim.owner,
            terms: self.claim.terms,
            checkpoint,
            not_after: self.trial.within(self.claim.terms.limit),
            echo: self.echo.clone(),
        }
    }

    pub(super) async fn renew(&mut self) -> Result<RenewReply, Stop> {
        self.send(&self.renewal(false)).await
    }

    pub(super) async fn checkpoint(&mut self) -> Result<RenewReply, Stop> {
        self.send(&self.renewal(true)).await
    }

    async fn send(&mut self, op: &Renew) -> Result<RenewReply, Stop> {
        let reply = self.trial.renew(&self.key, op).await?;
        match reply {
            RenewReply::Late => return Err(Stop::TooSlow),
            RenewReply::Renewed { .. } => {
                self.echo.answered = self.trial.heard();
                self.echo.checkpoint |= op.checkpoint;
            }
            _ => {}
        }
        Ok(reply)
    }

    pub(super) fn settlement(&self, outcome: Outcome) -> Settle {
        Settle {
            owner: self.claim.owner,
            terms: self.claim.terms,
            outcome,
            not_after: self.trial.within(self.claim.terms.limit),
            echo: Some(self.echo.clone()),
        }
    }

    pub(super) async fn settle(&mut self, outcome: Outcome) -> Result<SettleReply, Stop> {
        let op = self.settlement(outcome);
        match self.trial.settle(&self.key, &op).await? {
            SettleReply::Late => Err(Stop::TooSlow),
            reply => Ok(reply),
        }
    }

    /// Settles what has to be taken.
    pub(super) async fn settled(&mut self, outcome: Outcome) -> Result<(), Stop> {
        let reply = self.settle(outcome.clone()).await?;
        assert_eq!(reply, SettleReply::Settled, "to {outcome:?}");
        Ok(())
    }

    /// Waits until the lease of the last grant or renewal has lapsed.
    pub(super) async fn lapse(&self) -> Result<(), Stop> {
        let lease_until = self.echo.answered.after(self.claim.terms.lease);
        self.trial.until_past(lease_until).await
    }
}

fn knows_nothing() -> Echo {
    Echo {
        answered: StoreTime::default(),
        grant: Grant {
            fence: Fence::default(),
            number: 0,
            since: StoreTime::default(),
            takeover: false,
            doubt: false,
            token: None,
        },
        checkpoint: false,
        policy: OnAbandoned::Hold,
        fingerprint: None,
    }
}

/// A result that text codecs would spoil.
pub(super) fn result() -> Bytes {
    Bytes::from_static(b"\x00\xff{\"paid\":true}\r\n\x00")
}

/// Another one.
pub(super) fn other_result() -> Bytes {
    Bytes::from_static(b"\x00\xff{\"paid\":null}\r\n\x00")
}

pub(super) fn success() -> Outcome {
    Outcome::Success(Some(result()))
}

/// Every way to end an attempt.
pub(super) fn outcomes() -> Vec<Outcome> {
    vec![
        success(),
        Outcome::Success(None),
        Outcome::SuccessForget,
        Outcome::Failed,
        Outcome::FailedWith(result()),
        Outcome::Release,
        Outcome::Abandon,
        Outcome::GiveUp,
    ]
}
