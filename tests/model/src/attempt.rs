//! One attempt as its process sees it, and what it has sent.

use bytes::Bytes;
use idem_core::record::{Fence, Grant, Outcome, StoreTime};

use crate::plan::SAFE;

/// An attempt. One that does nothing any more has crashed: nothing ever forces it to go on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    pub(crate) stage: Stage,
    /// What it was told, once it was granted.
    pub(crate) known: Option<Known>,
    /// It counts itself lost for good.
    pub(crate) is_lost: bool,
    /// Its answer to "has it happened?", if it asked before it claimed.
    pub(crate) asked_early: bool,
    /// What it sent. Everything stays under way: any of it may arrive at any time, again, or never.
    pub(crate) sent: Vec<Packet>,
    /// Which of them arrived, by bits; only where none is copied on its way.
    pub(crate) arrived: u32,
    /// Replies that are still under way.
    pub(crate) slow: Vec<Reply>,
    pub(crate) truth: Truth,
}

/// What is so, whoever knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is known by somebody else"
)]
pub(crate) struct Truth {
    /// The first grant that the store gave it.
    pub(crate) granted: Option<Told>,
    /// Until when its lease runs by the store's last word.
    pub(crate) lease_until: StoreTime,
    /// The store took its last word.
    pub(crate) has_ended: bool,
    /// It has asked for its checkpoint, heard or not.
    pub(crate) has_marked: bool,
    /// Its effects may have begun.
    pub(crate) has_passed: bool,
    /// Somebody who knows said that it did nothing.
    pub(crate) is_excused: bool,
    pub(crate) effect: Effect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    /// Nobody has looked yet.
    Open,
    /// It happened.
    Happened,
    /// It did not, and can not any more: who was asked made sure of it.
    Barred,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Not begun.
    Idle,
    /// Its claim is under way.
    Asking {
        begun: StoreTime,
        /// When the send was sent whose answer counts.
        sent: StoreTime,
        /// Until when an earlier send, never answered, may arrive.
        before: Option<StoreTime>,
    },
    /// Granted; the body was never polled.
    Granted { before: Option<StoreTime> },
    /// `recover` runs.
    Recovering,
    /// The body runs.
    Running,
    /// The body waits for its checkpoint.
    Marking { begun: StoreTime },
    /// The body has ended so.
    Settling(End),
    /// It tells the store that nobody wants its claim.
    GivingUp {
        until: Option<StoreTime>,
        was_refused: bool,
    },
    /// Over, without a poll of the body, and the store knows.
    GivenUp,
    /// Over: its claim was answered, but not with a grant, and no send of it is unanswered.
    Refused,
    /// Over.
    Ended,
}

/// How an attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// With the effect of this attempt, its own or one that it found.
    Ok(usize),
    /// Nothing happened; its record says so.
    Fail,
    /// Nothing happened, and nothing is kept.
    Release,
    /// Nobody can say.
    Abandon,
    /// The body was never polled.
    GiveUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    /// The store's time in the last answer.
    pub(crate) answered: StoreTime,
    /// When what was answered was sent.
    pub(crate) sent: StoreTime,
    pub(crate) told: Told,
    pub(crate) checkpoint: bool,
}

/// A grant, without tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Told {
    pub(crate) fence: Fence,
    pub(crate) number: u32,
    pub(crate) since: StoreTime,
    pub(crate) takeover: bool,
    pub(crate) doubt: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Packet {
    pub(crate) sent: StoreTime,
    pub(crate) says: Says,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Says {
    Claim,
    Mark(Known),
    Renew(Known),
    Settle(End, Option<Known>),
}

/// A reply under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reply {
    pub(crate) to: Packet,
    pub(crate) at: StoreTime,
    pub(crate) answer: Answer,
}

/// What of a reply matters to its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Granted(Told),
    Renewed,
    Lost,
    Late,
    /// Any other answer to a claim, and any but late to a settle.
    Over,
}

impl Attempt {
    pub(crate) const IDLE: Self = Self {
        stage: Stage::Idle,
        known: None,
        is_lost: false,
        asked_early: false,
        sent: Vec::new(),
        arrived: 0,
        slow: Vec::new(),
        truth: Truth {
            granted: None,
            lease_until: StoreTime::from_micros(0),
            has_ended: false,
            has_marked: false,
            has_passed: false,
            is_excused: false,
            effect: Effect::Open,
        },
    };

    /// Whether it takes itself for the holder of the key.
    pub(crate) fn holds(&self, now: StoreTime) -> bool {
        let is_at_work = matches!(
            self.stage,
            Stage::Granted { .. } | Stage::Recovering | Stage::Running | Stage::Marking { .. }
        );
        is_at_work && !self.is_lost && !self.is_silent_for_too_long(now)
    }

    pub(crate) fn is_silent_for_too_long(&self, now: StoreTime) -> bool {
        self.known
            .is_none_or(|known| known.sent.after(SAFE).has_passed(now))
    }

    /// Whether it still listens for an answer to `packet`.
    pub(crate) fn listens_to(&self, packet: &Packet) -> bool {
        match (packet.says, self.stage) {
            (Says::Claim, Stage::Asking { sent, .. }) => sent == packet.sent,
            (Says::Mark(_), Stage::Marking { .. })
            | (Says::Renew(_), Stage::Recovering | Stage::Running | Stage::Marking { .. }) => true,
            (Says::Settle(end, _), Stage::Settling(mine)) => end == mine,
            (Says::Settle(end, _), Stage::GivingUp { .. }) => end == End::GiveUp,
            _ => false,
        }
    }

    /// How often it has sent something of this kind, and when last.
    pub(crate) fn sends(&self, is_it: impl Fn(&Says) -> bool) -> (usize, Option<StoreTime>) {
        let sends = self.sent.iter().filter(|packet| is_it(&packet.says));
        let last = sends.clone().map(|packet| packet.sent).max();
        (sends.count(), last)
    }

    /// Whether it asks nothing of the store any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::GivenUp | Stage::Refused | Stage::Ended)
    }

    /// Whether it still counts what it sent of this kind.
    pub(crate) fn counts(&self, says: &Says) -> bool {
        match says {
            Says::Claim => matches!(self.stage, Stage::Idle | Stage::Asking { .. }),
            Says::Mark(_) | Says::Renew(_) => matches!(
                self.stage,
                Stage::Granted { .. } | Stage::Recovering | Stage::Running | Stage::Marking { .. }
            ),
            Says::Settle(..) => !self.is_over(),
        }
    }
}

impl Told {
    pub(crate) fn from_grant(grant: &Grant) -> Self {
        let Grant {
            fence,
            number,
            since,
            takeover,
            doubt,
            token: _,
        } = *grant;
        Self {
            fence,
            number,
            since,
            takeover,
            doubt,
        }
    }

    pub(crate) fn grant(self) -> Grant {
        let Self {
            fence,
            number,
            since,
            takeover,
            doubt,
        } = self;
        Grant {
            fence,
            number,
            since,
            takeover,
            doubt,
            token: None,
        }
    }
}

impl End {
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Ok(whose) => Outcome::Success(Some(result_of(whose))),
            Self::Fail => Outcome::Failed,
            Self::Release => Outcome::Release,
            Self::Abandon => Outcome::Abandon,
            Self::GiveUp => Outcome::GiveUp,
        }
    }
}

/// The result that the effect of this attempt has.
pub(crate) fn result_of(attempt: usize) -> Bytes {
    const LETTERS: &[u8] = b"abcdefgh";
    Bytes::from_static(&LETTERS[attempt..=attempt])
}
