//! Who serves a slot, and moving one.

use anyhow::{Context, Result};

use super::Cluster;
use crate::redis::RedisServer;
use crate::resp::Reply;

/// Keys moved by one MIGRATE.
const BATCH: &str = "100";

/// Whether `node` says of itself that it is the master of `slot`.
pub(super) fn serves(node: &RedisServer, slot: u16) -> bool {
    let myself = own_line(node).unwrap_or_default();
    let is_master = myself
        .split(' ')
        .nth(2)
        .is_some_and(|flags| flags.contains("master"));
    is_master && myself.split(' ').skip(8).any(|range| holds(range, slot))
}

/// A slot on its way: see [`Cluster::begin_move`]. Dropped unfinished, it stays half moved.
#[derive(Debug)]
#[must_use]
pub struct SlotMove<'a> {
    cluster: &'a Cluster,
    from: &'a RedisServer,
    to: &'a RedisServer,
    slot: String,
}

impl<'a> SlotMove<'a> {
    pub(super) fn begin(
        cluster: &'a Cluster,
        from: &'a RedisServer,
        to: &'a RedisServer,
        slot: u16,
    ) -> Result<Self> {
        let slot = slot.to_string();
        to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)?])?;
        from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)?])?;
        Ok(Self {
            cluster,
            from,
            to,
            slot,
        })
    }

    /// Moves the keys, then tells every master the new owner.
    pub fn finish(self) -> Result<()> {
        while self.move_some()? {}
        let owner = id(self.to)?;
        let assign = ["CLUSTER", "SETSLOT", &self.slot, "NODE", &owner];
        self.to.cli(&assign)?;
        self.from.cli(&assign)?;
        for node in self.cluster.running().filter(|node| is_master(node)) {
            node.cli(&assign)?;
        }
        Ok(())
    }

    fn move_some(&self) -> Result<bool> {
        let found = self
            .from
            .command(&["CLUSTER", "GETKEYSINSLOT", &self.slot, BATCH])?;
        let Reply::List(keys) = found else {
            return Ok(false);
        };
        let port = self.to.port().to_string();
        let mut command = words(&["MIGRATE", "127.0.0.1", &port, "", "0", "5000"]);
        command.extend(
            self.to
                .password()
                .iter()
                .flat_map(|password| words(&["AUTH", password])),
        );
        command.push(b"KEYS".to_vec());
        command.extend(keys.iter().filter_map(bytes));
        if !keys.is_empty() {
            self.from.cli(&command)?;
        }
        Ok(!keys.is_empty())
    }
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn bytes(reply: &Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    }
}

fn id(node: &RedisServer) -> Result<String> {
    node.cli(&["CLUSTER", "MYID"])
}

fn is_master(node: &RedisServer) -> bool {
    node.role().is_ok_and(|role| role == "master")
}

/// `<id> <address> <flags> <master> <ping> <pong> <epoch> <link> <slot> <slot> …`
fn own_line(node: &RedisServer) -> Result<String> {
    let text = node.cli(&["CLUSTER", "NODES"])?;
    let line = text.lines().find(|line| line.contains("myself"));
    Ok(line.context("a node that does not know itself")?.to_owned())
}

/// A range is `7`, `0-5460` or, of a slot on its way, `[7->-<id>]`.
fn holds(range: &str, slot: u16) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) => (first..=last).contains(&slot),
        _ => false,
    }
}
