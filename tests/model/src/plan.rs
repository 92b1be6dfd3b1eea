//! What one run of the checker explores.

use std::time::Duration;

use idem_core::record::{OnAbandoned, StoreTime, Terms};

use crate::model::Action;
use crate::mutant::Mutant;
use crate::seen::{NOWHERE, Seen};

/// One set-up and its bounds. Everything that can happen within them is tried.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent options, as a user of the library sets them"
)]
pub struct Plan {
    /// What a claim does with an abandoned record.
    pub policy: OnAbandoned,
    /// The body sets the checkpoint; otherwise the claim is the checkpoint.
    pub own_checkpoint: bool,
    /// A takeover in doubt asks what the attempt before has done.
    pub recover: bool,
    /// How many attempts there are, each with an owner of its own.
    pub attempts: usize,
    /// How often one operation is sent at most, each time with a new deadline.
    pub sends: usize,
    /// Packets may arrive several times; otherwise only what was sent again does.
    pub copies: bool,
    /// Heartbeats of one attempt.
    pub renewals: usize,
    /// Words of an operator.
    pub words: usize,
    /// Refusals of a request that has not come yet.
    pub refusals: usize,
    /// How often the store may lose everything.
    pub losses: usize,
    /// Replies that are under way for longer than their operation.
    pub slow_replies: usize,
    /// Bodies also end in Release, not only in Fail.
    pub release: bool,
    /// Retention of a finished record.
    pub expire: Duration,
    /// Retention of an outcome that is held.
    pub doubt: Duration,
    /// How many seconds pass.
    pub horizon: u32,
    /// What has happened already.
    pub beginning: &'static [Action],
    /// What is broken on purpose.
    pub mutant: Mutant,
    /// Which answers came.
    pub seen: &'static Seen,
}

/// The times are coarse: somebody acts once a second, at any number of moments within it.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// A packet arrives in the second in which it was sent, or in the next; then it is late.
pub(crate) const LIMIT: Duration = Duration::from_millis(1500);
/// A lease lapses in the third second.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// As the engine counts: after 0.8 of its lease a silent attempt takes itself for lost.
pub(crate) const SAFE: Duration = Duration::from_millis(1600);
pub(crate) const START: StoreTime = StoreTime::from_micros(1_000_000_000);
/// No two events at the store have one time.
pub(crate) const MOMENT: Duration = Duration::from_micros(1);

impl Plan {
    /// At hold, the claim is the checkpoint, three attempts, nobody from outside.
    pub const HOLD: Self = Self {
        policy: OnAbandoned::Hold,
        own_checkpoint: false,
        recover: false,
        attempts: 3,
        sends: 2,
        copies: true,
        renewals: 0,
        words: 0,
        refusals: 0,
        losses: 0,
        slow_replies: 0,
        release: true,
        expire: Duration::from_mins(10),
        doubt: Duration::from_mins(10),
        horizon: 3,
        beginning: &[],
        mutant: Mutant::None,
        seen: &NOWHERE,
    };

    /// The same, and bodies set their checkpoint themselves.
    pub const MARKS: Self = Self {
        own_checkpoint: true,
        ..Self::HOLD
    };

    /// At hold with `recover`.
    pub const RECOVER: Self = Self {
        recover: true,
        ..Self::HOLD
    };

    /// At rerun.
    pub const RERUN: Self = Self {
        policy: OnAbandoned::Rerun,
        ..Self::HOLD
    };

    pub(crate) fn terms(&self) -> Terms {
        Terms {
            lease: LEASE,
            expire: self.expire,
            doubt: self.doubt,
            limit: LIMIT,
        }
    }

    /// Whether what is held as unknown outlives the run.
    pub(crate) fn holds_to_the_end(&self) -> bool {
        self.expire.max(self.doubt) > TICK * (self.horizon + 1)
    }

    pub(crate) fn end(&self) -> StoreTime {
        START.after(TICK * self.horizon)
    }
}
