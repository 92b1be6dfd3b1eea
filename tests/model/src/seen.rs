//! Which answers a run came across: a model in which an answer never comes proves nothing about it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use idem_core::record::{ClaimReply, OperatorReply, RefuseReply, RenewReply, Reply, SettleReply};

/// The answers that came, of all runs that share it.
#[derive(Debug)]
pub struct Seen {
    answers: AtomicU32,
    taken_over_twice: AtomicU64,
}

pub(crate) static NOWHERE: Seen = Seen::new();

macro_rules! answers {
    ($($name:ident: $pattern:pat $(if $guard:expr)?,)*) => {
        #[derive(Clone, Copy)]
        enum Row { $($name),* }

        const NAMES: &[&str] = &[$(stringify!($name)),*];

        fn row(reply: &Reply) -> Option<Row> {
            match reply {
                $($pattern $(if $guard)? => Some(Row::$name),)*
                _ => None,
            }
        }
    };
}

answers! {
    ClaimedInDoubt: Reply::Claim(ClaimReply::Claimed(grant)) if grant.doubt,
    ClaimedTakeover: Reply::Claim(ClaimReply::Claimed(grant)) if grant.takeover,
    Claimed: Reply::Claim(ClaimReply::Claimed(_)),
    InProgress: Reply::Claim(ClaimReply::InProgress { .. }),
    OutcomeUnknown: Reply::Claim(ClaimReply::OutcomeUnknown),
    Completed: Reply::Claim(ClaimReply::Completed { .. }),
    ClaimRefused: Reply::Claim(ClaimReply::Refused),
    Closed: Reply::Claim(ClaimReply::Closed),
    LateClaim: Reply::Claim(ClaimReply::Late),
    Rebuilt: Reply::Renew(RenewReply::Renewed { rebuilt: true }),
    Renewed: Reply::Renew(RenewReply::Renewed { rebuilt: false }),
    Lost: Reply::Renew(RenewReply::Lost),
    LateRenewal: Reply::Renew(RenewReply::Late),
    Settled: Reply::Settle(SettleReply::Settled),
    Adopted: Reply::Settle(SettleReply::Adopted),
    Superseded: Reply::Settle(SettleReply::Superseded { .. }),
    LateSettle: Reply::Settle(SettleReply::Late),
    Forgotten: Reply::Forget(OperatorReply::Done),
    ForgetChanged: Reply::Forget(OperatorReply::Changed),
    Resolved: Reply::Resolve(OperatorReply::Done),
    ResolveChanged: Reply::Resolve(OperatorReply::Changed),
    Refused: Reply::Refuse(RefuseReply::Refused),
    RefuseInProgress: Reply::Refuse(RefuseReply::InProgress { .. }),
    RefuseUnknown: Reply::Refuse(RefuseReply::OutcomeUnknown),
    RefuseCompleted: Reply::Refuse(RefuseReply::Completed { .. }),
    LateRefusal: Reply::Refuse(RefuseReply::Late),
}

impl Default for Seen {
    fn default() -> Self {
        Self::new()
    }
}

impl Seen {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            answers: AtomicU32::new(0),
            taken_over_twice: AtomicU64::new(0),
        }
    }

    pub(crate) fn note(&self, reply: &Reply) {
        let Some(row) = row(reply) else { return };
        let bit = 1 << row as u32;
        if self.answers.load(Ordering::Relaxed) & bit == 0 {
            self.answers.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(crate) fn takeovers(&self, in_one_world: usize) {
        if in_one_world > 1 {
            self.taken_over_twice.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many steps led to a world in which two attempts had each taken over.
    #[must_use]
    pub fn taken_over_twice(&self) -> u64 {
        self.taken_over_twice.load(Ordering::Relaxed)
    }

    /// The names of those that never came.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let seen = self.answers.load(Ordering::Relaxed);
        let names = NAMES.iter().enumerate();
        let missing = names.filter(|(bit, _)| seen & (1 << bit) == 0);
        missing.map(|(_, name)| *name).collect()
    }
}
