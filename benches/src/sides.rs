//! Who is compared: each pays an order once, and answers its duplicates from Redis.

use std::fmt;

use anyhow::{Context, Result};

use crate::order::Order;

mod cached;
mod idempotent;
mod ours;
pub(crate) mod raw;

pub(crate) use cached::Cached;
pub(crate) use idempotent::Idempotent;
pub(crate) use ours::{Ours, OursWithFingerprint};
pub(crate) use raw::Raw;

/// How long results are kept, in seconds.
const EXPIRE: u64 = 600;

/// One way to pay an order once.
pub(crate) trait Side: Sized + Send + Sync + 'static {
    /// Connects to the server at `url`.
    fn connect(url: &str) -> impl Future<Output = Result<Self>> + Send;

    /// Pays, or answers as a duplicate.
    fn pay(&self, order: Order) -> impl Future<Output = Result<()>> + Send;
}

/// All of them, the raw loop first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Raw,
    Ours,
    OursWithFingerprint,
    Idempotent,
    Cached,
}

impl Name {
    pub(crate) const ALL: [Self; 5] = [
        Self::Raw,
        Self::Ours,
        Self::OursWithFingerprint,
        Self::Idempotent,
        Self::Cached,
    ];

    /// The side that is written so on the command line.
    pub(crate) fn of_word(word: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|name| name.word() == word);
        found.with_context(|| format!("there is no side `{word}`"))
    }

    /// Whether the targets are meant for it.
    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Ours | Self::OursWithFingerprint)
    }

    /// As it is written on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Ours => "ours",
            Self::OursWithFingerprint => "ours-fingerprint",
            Self::Idempotent => "idempotent",
            Self::Cached => "cached",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Raw => "raw loop",
            Self::Ours => "idem",
            Self::OursWithFingerprint => "idem, fingerprint",
            Self::Idempotent => "idempotent 2",
            Self::Cached => "cached 4 (no guard)",
        })
    }
}
