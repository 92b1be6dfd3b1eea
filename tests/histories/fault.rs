//! What is done to stores, wires and workers.

use std::fmt;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;
use idem_tests::proxy::{Mode, Proxy, Then};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Connections are closed, and refused for a while.
    Cut,
    /// What is sent is lost, and nobody is told.
    BlackHole,
    /// Nothing passes for a while, then all of it.
    Hold,
    /// All of it passes later.
    Delay,
    /// Commands pass, their replies are under way when the wire is cut.
    LateReplies,
    /// One command runs, and its reply is lost with the connection.
    LostReply,
    /// One command runs, and nothing is heard any more.
    LostReplyAndSilence,
    /// SIGSTOP, for a while.
    FrozenServer,
    /// kill -9, and started again with its data.
    KilledServer,
    /// kill -9, and started again without.
    EmptyServer,
    /// SCRIPT FLUSH.
    NoScripts,
    /// Out of memory, for a while.
    NoMemory,
    /// The master is killed, a replica takes over.
    FailOver,
    /// The same, and the replica did not have the latest writes.
    FailOverBehind,
    /// The slot of a key that is called goes to another node.
    MovedSlot,
    /// kill -9 of a worker, and another one is started.
    KilledWorker,
    /// SIGSTOP of a worker, for less or more than a lease.
    FrozenWorker,
}

/// What can be done to workers, whatever their store is.
pub(crate) const OF_WORKERS: [Fault; 2] = [Fault::KilledWorker, Fault::FrozenWorker];

impl Fault {
    /// Whether a store may have lost records by it.
    pub(crate) fn loses(self) -> bool {
        matches!(
            self,
            Self::EmptyServer | Self::FailOver | Self::FailOverBehind
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Cut => "cut",
            Self::BlackHole => "black hole",
            Self::Hold => "held back",
            Self::Delay => "delay",
            Self::LateReplies => "cut before replies",
            Self::LostReply => "lost reply",
            Self::LostReplyAndSilence => "lost reply and silence",
            Self::FrozenServer => "server stopped",
            Self::KilledServer => "server killed",
            Self::EmptyServer => "server emptied",
            Self::NoScripts => "scripts flushed",
            Self::NoMemory => "out of memory",
            Self::FailOver => "fail-over",
            Self::FailOverBehind => "fail-over behind",
            Self::MovedSlot => "slot moved",
            Self::KilledWorker => "worker killed",
            Self::FrozenWorker => "worker stopped",
        })
    }
}

/// The length of a fault is part of the schedule that the seed draws.
pub(crate) fn pass(dice: &mut Rng, millis: Range<u64>) {
    thread::sleep(Duration::from_millis(dice.u64(millis)));
}

/// A fault of a wire that takes a while.
pub(crate) fn wire(proxy: &Proxy, fault: Fault, dice: &mut Rng) -> Result<()> {
    let millis = |dice: &mut Rng, longest| Duration::from_millis(dice.u64(1..longest));
    match fault {
        Fault::Cut => for_a_while(proxy, Mode::Cut, dice, 1..600),
        Fault::BlackHole => for_a_while(proxy, Mode::BlackHole, dice, 50..1_500),
        Fault::Hold => for_a_while(proxy, Mode::Hold, dice, 50..1_500),
        Fault::Delay => {
            let mode = Mode::Delay {
                requests: millis(dice, 400),
                replies: millis(dice, 400),
            };
            for_a_while(proxy, mode, dice, 200..800);
        }
        Fault::LateReplies => {
            let mode = Mode::Delay {
                requests: Duration::ZERO,
                replies: Duration::from_secs(1),
            };
            proxy.set(mode);
            pass(dice, 20..400);
            for_a_while(proxy, Mode::Cut, dice, 1..100);
        }
        fault => anyhow::bail!("{fault} is not a fault of a wire"),
    }
    Ok(())
}

fn for_a_while(proxy: &Proxy, mode: Mode, dice: &mut Rng, millis: Range<u64>) {
    proxy.set(mode);
    pass(dice, millis);
    proxy.set(Mode::Pass);
}

/// Loses one reply; whether there was one.
pub(crate) fn lose_reply(proxy: &Proxy, command: &str, then: Then) -> bool {
    proxy.drop_reply_to(command, then);
    let begin = Instant::now();
    while proxy.is_armed() {
        if begin.elapsed() > Duration::from_secs(2) {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}
