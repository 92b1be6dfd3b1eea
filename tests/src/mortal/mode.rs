//! How a guarded call in lease mode treats its record, and what its body does.

use anyhow::{Context, Result};
use idem_core::{OnError, Policy};

use super::lease::LEASE;

/// How an attempt treats its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mode {
    /// `on_abandoned = "rerun"`, otherwise hold.
    pub rerun: bool,
    /// What the body does.
    pub body: Body,
}

/// What a body does. One that fails does so in the process that is to die; those after it succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// An effect; the claim is the checkpoint.
    Plain,
    /// Its own checkpoint, and an effect.
    Marked,
    /// An effect and `settle_in`, in a transaction of its own.
    SettlesIn,
    /// As plain; a takeover in doubt looks whether the effect has happened.
    Recovers,
    /// As plain, in a task of its own.
    Detached,
    /// None: a lock is held for as long.
    Locks,
    /// It fails without an effect, and its error says so: [`OnError::Fail`].
    Fails,
    /// The same by [`OnError::Release`].
    Releases,
    /// It fails behind its effect, and its error is kept: [`OnError::Replay`].
    FailsForGood,
    /// The same, and nobody knows what has happened: [`OnError::Abandon`].
    FailsInDoubt,
    /// As plain, for a one-time token.
    UsesToken,
    /// The same, and success is forgotten.
    ForgetsToken,
    /// As [fails](Self::Fails), for a one-time token.
    HandsBack,
}

impl Body {
    const ALL: &[(Self, &str)] = &[
        (Self::Plain, ""),
        (Self::Marked, "own checkpoint"),
        (Self::SettlesIn, "settle_in"),
        (Self::Recovers, "recover"),
        (Self::Detached, "detach"),
        (Self::Locks, "lock"),
        (Self::Fails, "fail"),
        (Self::Releases, "release"),
        (Self::FailsForGood, "error kept"),
        (Self::FailsInDoubt, "error in doubt"),
        (Self::UsesToken, "token"),
        (Self::ForgetsToken, "token forgotten"),
        (Self::HandsBack, "token handed back"),
    ];

    /// Whether it is for a one-time token.
    #[must_use]
    pub fn takes_a_token(self) -> bool {
        matches!(self, Self::UsesToken | Self::ForgetsToken | Self::HandsBack)
    }

    /// Whether it fails.
    #[must_use]
    pub fn fails(self) -> bool {
        self.fails_undone() || matches!(self, Self::FailsForGood | Self::FailsInDoubt)
    }

    /// Whether it fails without an effect.
    #[must_use]
    pub fn fails_undone(self) -> bool {
        matches!(self, Self::Fails | Self::Releases | Self::HandsBack)
    }
}

impl Mode {
    /// As it is told to another process.
    #[must_use]
    pub fn name(self) -> String {
        let policy = if self.rerun { "rerun" } else { "hold" };
        let named = Body::ALL.iter().find(|(body, _)| *body == self.body);
        let body = named.map_or("", |(_, name)| *name);
        if body.is_empty() {
            policy.to_owned()
        } else {
            format!("{policy}, {body}")
        }
    }

    /// The mode of this name.
    pub fn named(name: &str) -> Result<Self> {
        let (policy, body) = name.split_once(", ").unwrap_or((name, ""));
        let named = Body::ALL.iter().find(|(_, name)| *name == body);
        let (body, _) = named.with_context(|| format!("no body is called {body:?}"))?;
        Ok(Self {
            rerun: policy == "rerun",
            body: *body,
        })
    }

    pub(super) fn policy(self) -> Policy {
        let policy = Policy::new().lease(LEASE);
        let policy = match self.body {
            Body::Marked => policy.own_checkpoint(),
            Body::ForgetsToken => policy.forget(),
            _ => policy,
        };
        if self.rerun {
            policy.rerun_abandoned()
        } else {
            policy.hold_abandoned()
        }
    }

    pub(super) fn on_error(self) -> OnError {
        match self.body {
            Body::Releases => OnError::Release,
            Body::FailsForGood => OnError::Replay,
            Body::FailsInDoubt => OnError::Abandon,
            _ => OnError::Fail,
        }
    }
}
