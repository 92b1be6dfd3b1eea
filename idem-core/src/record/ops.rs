//! The operations on a record, and their answers.

use std::time::Duration;

use bytes::Bytes;

use super::{Fence, OnAbandoned, Owner, Status, StoreTime, Subject, TokenBinding};
use crate::fingerprint::Fingerprint;

/// How long things last, the same in every write of one attempt. Each is cut to whole
/// milliseconds, the unit of the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long a silent attempt keeps its record.
    pub lease: Duration,
    /// Retention of a finished record.
    pub expire: Duration,
    /// Retention of an outcome that is held as unknown, if longer than `expire`.
    pub doubt: Duration,
    /// How long one store call may take.
    pub limit: Duration,
}

impl Terms {
    /// How long a closed mark stays: longer than any packet of the attempt can be under way.
    #[must_use]
    pub fn mark(&self) -> Duration {
        const LONGEST_FOR_THE_LEASE: Duration = Duration::from_secs(10);
        self.lease
            .min(LONGEST_FOR_THE_LEASE)
            .max(self.limit.saturating_mul(2))
    }

    /// How long an attempt's record stays without an answered write of its owner.
    #[must_use]
    pub fn keep(&self, checkpoint: bool, policy: OnAbandoned) -> Duration {
        if checkpoint && policy == OnAbandoned::Hold {
            self.expire.max(self.doubt)
        } else {
            self.expire
        }
    }
}

/// Take the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The attempt that asks.
    pub owner: Owner,
    /// Its times.
    pub terms: Terms,
    /// The payload's hash, where the function has a `fingerprint`.
    pub fingerprint: Option<Fingerprint>,
    /// What to do with an abandoned record.
    pub policy: OnAbandoned,
    /// Whether the claim is itself the checkpoint.
    pub checkpoint: bool,
    /// A token is required, bound to this subject.
    pub token: Option<Subject>,
    /// The caller can find out what an attempt that died has done.
    pub recover: bool,
    /// The caller will wait if somebody else has it.
    pub wait: bool,
    /// After this moment the claim is refused as late.
    pub not_after: StoreTime,
}

/// Prolong the lease, or mark the checkpoint, which prolongs it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renew {
    /// The attempt that asks.
    pub owner: Owner,
    /// Its times.
    pub terms: Terms,
    /// Mark the checkpoint.
    pub checkpoint: bool,
    /// After this moment the renewal is refused as late.
    pub not_after: StoreTime,
    /// What the owner knows of its record.
    pub echo: Echo,
}

/// Finish the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// The attempt that asks.
    pub owner: Owner,
    /// Its times.
    pub terms: Terms,
    /// How it ended.
    pub outcome: Outcome,
    /// After this moment the settle is refused as late.
    pub not_after: StoreTime,
    /// What the owner knows of its record; `None` if its claim was never answered.
    pub echo: Option<Echo>,
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done, with the encoded result where one is to be replayed.
    Success(Option<Bytes>),
    /// Done, and nothing is kept.
    SuccessForget,
    /// The body says that nothing happened; the next claim runs again.
    Failed,
    /// …with an encoded error that is replayed instead.
    FailedWith(Bytes),
    /// Nothing happened and nothing is kept.
    Release,
    /// What happened is not known.
    Abandon,
    /// The body never began.
    GiveUp,
}

/// What an owner knows of its record: enough to judge its age and to rebuild it after a loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Echo {
    /// The store time of the last answered write.
    pub answered: StoreTime,
    /// What the claim was given.
    pub grant: Grant,
    /// Whether its checkpoint had passed.
    pub checkpoint: bool,
    /// The policy it was claimed with.
    pub policy: OnAbandoned,
    /// The payload's hash.
    pub fingerprint: Option<Fingerprint>,
}

/// What a granted claim is told; a resend of the same claim is told the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Higher than every fence of this key before.
    pub fence: Fence,
    /// The attempt's number, from 1.
    pub number: u32,
    /// When it was granted.
    pub since: StoreTime,
    /// It follows an attempt that died.
    pub takeover: bool,
    /// …whose checkpoint had passed.
    pub doubt: bool,
    /// The token it consumes.
    pub token: Option<TokenBinding>,
}

/// The answer to a [`Claim`].
#[derive(Clone, PartialEq, Eq)]
pub enum ClaimReply {
    /// Run the body.
    Claimed(Grant),
    /// A live attempt has it.
    InProgress {
        /// When that was granted.
        since: StoreTime,
        /// What is left of its lease.
        lease_left: Duration,
    },
    /// An attempt died after its checkpoint.
    OutcomeUnknown,
    /// Done before.
    Completed {
        /// The encoded result, where one was stored.
        result: Option<Bytes>,
    },
    /// Failed before, with an error that is replayed.
    FailedWith(Bytes),
    /// Refused before it began.
    Refused,
    /// Another payload.
    Mismatch,
    /// No such token for this caller.
    TokenRejected,
    /// This very attempt has ended.
    Closed,
    /// The claim was under way for too long; nothing was written.
    Late,
    /// Foreign bytes; nothing was written.
    Damaged,
}

/// The answer to a [`Renew`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenewReply {
    /// The lease counts anew.
    Renewed {
        /// The record had been lost and was built again.
        rebuilt: bool,
    },
    /// The attempt does not own the record any more.
    Lost,
    /// The renewal was under way for too long; nothing was written.
    Late,
    /// Foreign bytes; nothing was written.
    Damaged,
}

/// The answer to a [`Settle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleReply {
    /// As asked, now or before.
    Settled,
    /// The record had been lost; the success was written anew.
    Adopted,
    /// Somebody else's record, or another end of this one, stands.
    Superseded {
        /// What stands.
        current: Current,
    },
    /// The settle was under way for too long; nothing was written.
    Late,
    /// Foreign bytes; nothing was written.
    Damaged,
}

/// What stands at a key when an owner comes too late.
#[derive(Clone, PartialEq, Eq)]
pub enum Current {
    /// Nothing, or only a closed mark.
    Nothing,
    /// An attempt.
    Processing,
    /// A success, with its result where one was stored.
    Success {
        /// The encoded result.
        result: Option<Bytes>,
    },
    /// A failure.
    Failed,
    /// A token that waits for its use.
    Issued,
    /// A refusal.
    Refused,
}

/// Issue a one-time token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issue {
    /// To whom.
    pub subject: Subject,
    /// How long it can be used.
    pub ttl: Duration,
    /// After this moment the issue is refused as late.
    pub not_after: StoreTime,
}

/// The answer to an [`Issue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssueReply {
    /// The token waits for its use.
    Issued,
    /// The key holds something else.
    Taken,
    /// The issue was under way for too long; nothing was written.
    Late,
    /// Foreign bytes; nothing was written.
    Damaged,
}

/// End a record by an operator's word, if it is still as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forget {
    /// The fence as read.
    pub fence: Fence,
    /// The status as read.
    pub status: Status,
    /// Only release: refuse to end a success.
    pub release: bool,
    /// Also a live lease, also foreign bytes.
    pub force: bool,
}

/// Say what an attempt has done, if its record is still as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    /// The fence as read.
    pub fence: Fence,
    /// What is known.
    pub verdict: Verdict,
    /// Also a live lease.
    pub force: bool,
}

/// What somebody found out about an attempt.
#[derive(Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It did not happen and can not any more: the next claim runs.
    NotDone,
    /// It happened, with this encoded result where one is to be replayed.
    Done(Option<Bytes>),
}

/// The answer to [`Forget`] and [`Resolve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorReply {
    /// As asked.
    Done,
    /// The record is not as it was read; nothing was written.
    Changed,
}

/// Refuse a request that has not come yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refuse {
    /// How long the refusal stands.
    pub expire: Duration,
    /// After this moment the refusal is itself refused as late.
    pub not_after: StoreTime,
}

/// The answer to a [`Refuse`].
#[derive(Clone, PartialEq, Eq)]
pub enum RefuseReply {
    /// The request will be refused.
    Refused,
    /// A live attempt has the key.
    InProgress {
        /// When that was granted.
        since: StoreTime,
        /// What is left of its lease.
        lease_left: Duration,
    },
    /// An attempt died after its checkpoint.
    OutcomeUnknown,
    /// Done before.
    Completed {
        /// The encoded result, where one was stored.
        result: Option<Bytes>,
    },
    /// Failed before, with an error that is replayed.
    FailedWith(Bytes),
    /// A one-time token's key.
    TokenRejected,
    /// The refusal was under way for too long; nothing was written.
    Late,
    /// Foreign bytes; nothing was written.
    Damaged,
}
