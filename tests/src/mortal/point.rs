//! The names of the points.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result};

macro_rules! points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)*) => {
        /// A point of a guarded call. *Sent* is a point that a race decides: the bytes have left,
        /// and nobody heard an answer. *Done* is one where the answer has left the other side.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Point {
            $($(#[$doc])* $point,)*
        }

        impl Point {
            const ALL: &[(Self, &str)] = &[$((Self::$point, $name),)*];
        }
    };
}

points! {
    /// The caller's transaction has begun, the guarded call has not.
    Begun = "before the claim",
    /// Some of what a claim sends has left.
    ClaimSent = "claim sent",
    /// The store has granted the claim; its answer is never heard.
    ClaimDone = "claim done, unheard",
    /// The first line of the body.
    Claimed = "claimed",
    /// Some of what the checkpoint sends has left.
    CheckpointSent = "checkpoint sent",
    /// The store has marked the checkpoint; its answer is never heard.
    CheckpointDone = "checkpoint done, unheard",
    /// The line after the checkpoint.
    Passed = "checkpoint passed",
    /// The line after the effect.
    Effect = "effect done",
    /// Some of what writes the record into the caller's transaction has left.
    RecordSent = "record sent",
    /// The record is written in the transaction, which is still open.
    Written = "before COMMIT",
    /// COMMIT has left.
    CommitSent = "COMMIT sent",
    /// The database has answered to COMMIT; nobody hears it.
    CommitDone = "COMMIT done, unheard",
    /// The line after COMMIT.
    Committed = "committed",
    /// Some of what the settle sends has left.
    SettleSent = "settle sent",
    /// The store has settled; its answer is never heard.
    SettleDone = "settle done, unheard",
    /// The line after the guarded call.
    Settled = "settled",
    /// A consumer is about to acknowledge its message.
    Handled = "before the acknowledgement",
    /// The acknowledgement has left.
    AckSent = "acknowledgement sent",
    /// The broker has taken the acknowledgement. Nobody hears of that, but the next message comes.
    AckDone = "acknowledgement done",
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(point, _)| point == self);
        f.pad(named.map_or("", |(_, name)| name))
    }
}

impl FromStr for Point {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let named = Self::ALL.iter().find(|(_, name)| *name == text);
        let (point, _) = named.with_context(|| format!("no point is called {text:?}"))?;
        Ok(*point)
    }
}
