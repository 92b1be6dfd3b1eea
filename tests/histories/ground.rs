//! Stores that can be broken, and the ways to break each.

use std::time::Duration;

use anyhow::{Context, Result};
use fastrand::Rng;
use idem_tests::cluster::Cluster;
use idem_tests::postgres::PostgresServer;
use idem_tests::proxy::{Proxy, Then};
use idem_tests::redis::{Fsync, RedisOptions, RedisServer};
use idem_tests::sentinel::Sentinels;

use crate::fault::{self, Fault, lose_reply, wire};
use crate::postgres;

/// A record of an unknown outcome is kept for a week, all others for a day; what it takes to write them
/// comes on top.
pub(crate) const LONGEST: Duration = Duration::from_hours(8 * 24);

/// What a store still has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) records: usize,
    /// Those that never end, or only after [`LONGEST`].
    pub(crate) endless: usize,
}

/// A store between which and its clients stand faults.
pub(crate) trait Ground: Sync {
    /// In a report.
    const NAME: &'static str;

    /// Where workers find it.
    fn url(&self) -> String;

    /// Where it is found when the faults are over.
    fn direct_url(&self) -> String {
        self.url()
    }

    /// What can be done to it.
    fn faults(&self) -> Vec<Fault>;

    /// Does it, and undoes it; whether it took place. `key` is one that is called now.
    fn suffer(&self, fault: Fault, key: &str, dice: &mut Rng) -> Result<bool>;

    /// What it still has.
    fn left(&self) -> Result<Left>;

    /// Something that becomes another thing when the store is told to do anything.
    fn pulse(&self) -> Result<String>;
}

fn left_in<'a>(servers: impl IntoIterator<Item = &'a RedisServer>) -> Result<Left> {
    servers
        .into_iter()
        .try_fold(Left::default(), |left, server| {
            let (records, endless) = server.keys(LONGEST)?;
            Ok(Left {
                records: left.records + records,
                endless: left.endless + endless,
            })
        })
}

/// How often scripts were run.
fn pulse_of<'a>(servers: impl IntoIterator<Item = &'a RedisServer>) -> Result<String> {
    let calls = servers.into_iter().map(|server| {
        let calls = [server.calls("evalsha")?, server.calls("eval")?];
        Ok(format!("{}: {calls:?}", server.port()))
    });
    Ok(calls.collect::<Result<Vec<_>>>()?.join(", "))
}

/// One Redis server that forgets nothing when it is killed, behind a wire.
pub(crate) struct OneRedis {
    server: RedisServer,
    wire: Proxy,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It comes back with everything that it had.
    Durable,
    /// Or with nothing.
    Forgetful,
    /// Durable, for those who do not use scripts.
    OfTheTextbook,
}

impl OneRedis {
    pub(crate) fn start(kind: Kind) -> Result<Self> {
        let server = RedisServer::start(RedisOptions::new().aof(Fsync::Always))?;
        let wire = Proxy::start(server.address())?;
        Ok(Self { server, wire, kind })
    }

    /// What its clients send.
    fn command(&self) -> &'static str {
        match self.kind {
            Kind::Durable | Kind::Forgetful => "EVALSHA",
            Kind::OfTheTextbook => "SET",
        }
    }

    fn for_a_while_without_memory(&self, dice: &mut Rng) -> Result<()> {
        self.server.cli(&["CONFIG", "SET", "maxmemory", "1"])?;
        fault::pass(dice, 100..900);
        self.server.cli(&["CONFIG", "SET", "maxmemory", "0"])?;
        Ok(())
    }
}

impl Ground for OneRedis {
    const NAME: &'static str = "redis";

    fn url(&self) -> String {
        self.wire.url()
    }

    fn direct_url(&self) -> String {
        self.server.url()
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = vec![
            Fault::Cut,
            Fault::BlackHole,
            Fault::Hold,
            Fault::Delay,
            Fault::LateReplies,
            Fault::LostReply,
            Fault::LostReplyAndSilence,
            Fault::FrozenServer,
            Fault::KilledServer,
            Fault::NoScripts,
            Fault::NoMemory,
        ];
        if self.kind == Kind::Forgetful {
            faults.push(Fault::EmptyServer);
        }
        faults
    }

    fn suffer(&self, fault: Fault, _: &str, dice: &mut Rng) -> Result<bool> {
        match fault {
            Fault::FrozenServer => {
                self.server.freeze()?;
                fault::pass(dice, 100..1_500);
                self.server.thaw()?;
            }
            Fault::KilledServer => {
                self.server.kill()?;
                fault::pass(dice, 1..500);
                self.server.restart()?;
            }
            Fault::EmptyServer => {
                self.server.kill()?;
                fault::pass(dice, 1..500);
                self.server.restart_empty()?;
            }
            Fault::NoScripts => {
                self.server.cli(&["SCRIPT", "FLUSH"])?;
            }
            Fault::NoMemory => self.for_a_while_without_memory(dice)?,
            Fault::LostReply => return Ok(lose_reply(&self.wire, self.command(), Then::Cut)),
            Fault::LostReplyAndSilence => {
                return Ok(lose_reply(&self.wire, self.command(), Then::Hang));
            }
            fault => wire(&self.wire, fault, dice)?,
        }
        Ok(true)
    }

    fn left(&self) -> Result<Left> {
        left_in([&self.server])
    }

    fn pulse(&self) -> Result<String> {
        pulse_of([&self.server])
    }
}

/// One PostgreSQL server behind a wire.
pub(crate) struct OnePostgres {
    server: PostgresServer,
    wire: Proxy,
}

impl OnePostgres {
    pub(crate) fn start() -> Result<Self> {
        let server = PostgresServer::start()?;
        let wire = Proxy::start(address(&server.url())?.parse()?)?;
        Ok(Self { server, wire })
    }
}

/// Host and port in a URL.
fn address(url: &str) -> Result<&str> {
    let (_, after) = url.split_once('@').context("no user")?;
    let (address, _) = after.split_once('/').context("no database")?;
    Ok(address)
}

impl Ground for OnePostgres {
    const NAME: &'static str = "postgres";

    fn url(&self) -> String {
        let direct = self.server.url();
        match address(&direct) {
            Ok(server) => direct.replace(server, &self.wire.address().to_string()),
            Err(_) => direct,
        }
    }

    fn direct_url(&self) -> String {
        self.server.url()
    }

    fn faults(&self) -> Vec<Fault> {
        vec![
            Fault::Cut,
            Fault::BlackHole,
            Fault::Hold,
            Fault::Delay,
            Fault::LateReplies,
            Fault::KilledServer,
        ]
    }

    fn suffer(&self, fault: Fault, _: &str, dice: &mut Rng) -> Result<bool> {
        if fault == Fault::KilledServer {
            self.server.restart()?;
            return Ok(true);
        }
        wire(&self.wire, fault, dice)?;
        Ok(true)
    }

    fn left(&self) -> Result<Left> {
        postgres::left(self)
    }

    fn pulse(&self) -> Result<String> {
        postgres::pulse(self)
    }
}

impl Ground for Sentinels {
    const NAME: &'static str = "sentinel";

    fn url(&self) -> String {
        format!("sentinel:{}", self.urls().join(","))
    }

    fn faults(&self) -> Vec<Fault> {
        vec![Fault::FailOver, Fault::FailOverBehind]
    }

    fn suffer(&self, fault: Fault, _: &str, dice: &mut Rng) -> Result<bool> {
        if fault == Fault::FailOverBehind {
            self.master()?.cut_replicas()?;
            fault::pass(dice, 100..500);
        }
        let old = self.kill_master()?;
        self.wait_failed_over(old)?;
        old.restart()?;
        self.master()?.mend_replicas()?;
        old.mend_replicas()?;
        self.wait_ready()?;
        Ok(true)
    }

    fn left(&self) -> Result<Left> {
        left_in([self.master()?])
    }

    fn pulse(&self) -> Result<String> {
        pulse_of([self.master()?])
    }
}

/// Each third slot is somebody else's.
fn masters(cluster: &Cluster) -> Result<Vec<&RedisServer>> {
    let slots = (0..3).map(|third| third * 5_500 + 100);
    slots.map(|slot| cluster.master_of(slot)).collect()
}

impl Ground for Cluster {
    const NAME: &'static str = "cluster";

    fn url(&self) -> String {
        format!("cluster:{}", self.urls().join(","))
    }

    fn faults(&self) -> Vec<Fault> {
        vec![Fault::MovedSlot]
    }

    fn suffer(&self, _: Fault, key: &str, dice: &mut Rng) -> Result<bool> {
        let slot = self.slot_of(key)?;
        let from = self.master_of(slot)?.port();
        let others = masters(self)?.into_iter();
        let mut others = others.filter(|node| node.port() != from);
        let Some(to) = others.next() else {
            return Ok(false);
        };
        let moving = self.begin_move(slot, to)?;
        fault::pass(dice, 50..400);
        moving.finish()?;
        Ok(true)
    }

    fn left(&self) -> Result<Left> {
        left_in(masters(self)?)
    }

    fn pulse(&self) -> Result<String> {
        pulse_of(masters(self)?)
    }
}
