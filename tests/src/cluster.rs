//! A Redis Cluster of six processes: three masters, a replica each.

use std::env;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::program;
use crate::redis::{RedisOptions, RedisServer};
use crate::wait::{need, until};

mod slots;
pub use slots::SlotMove;

const NODES: usize = 6;
const START: Duration = Duration::from_mins(1);
const FAIL_OVER: Duration = Duration::from_secs(30);

/// Six servers on loopback that share the 16,384 slots. A master that is silent for 1 s is
/// replaced by its replica.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
}

impl Cluster {
    /// Starts the servers, joins them with `redis-cli --cluster create`, and waits until every
    /// node says `cluster_state:ok` and every master has its replica online.
    pub fn start(options: &RedisOptions) -> Result<Self> {
        let options = with_cluster(options.clone());
        let start = |_| RedisServer::start(options.clone());
        let nodes = (0..NODES).map(start).collect::<Result<Vec<_>>>()?;
        let cluster = Self { nodes };
        cluster.join()?;
        cluster.wait_ready()?;
        Ok(cluster)
    }

    /// All nodes, living and killed.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// `redis://…` of each node.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The slot of a key, by the server's own reckoning.
    pub fn slot_of(&self, key: &str) -> Result<u16> {
        Ok(self.any()?.cli(&["CLUSTER", "KEYSLOT", key])?.parse()?)
    }

    /// The node that serves a slot.
    ///
    /// # Errors
    /// While the living nodes agree on none, for instance before a fail-over.
    pub fn master_of(&self, slot: u16) -> Result<&RedisServer> {
        let serving = |node: &&RedisServer| node.is_running() && slots::serves(node, slot);
        let found = self.nodes.iter().find(serving);
        found.with_context(|| format!("nobody serves slot {slot}"))
    }

    /// kill -9 on the master of a key, whose handle it gives: [`RedisServer::restart`] brings it
    /// back as a replica.
    pub fn kill_master_of(&self, key: &str) -> Result<&RedisServer> {
        let master = self.master_of(self.slot_of(key)?)?;
        master.kill()?;
        Ok(master)
    }

    /// Waits until another living node serves the slot of `key` and all living nodes say
    /// `cluster_state:ok`; gives the new master.
    pub fn wait_failed_over(&self, key: &str) -> Result<&RedisServer> {
        let slot = self.slot_of(key)?;
        until("a fail-over in the cluster", FAIL_OVER, || {
            self.agrees()?;
            self.master_of(slot)
        })
    }

    /// Waits until all six nodes are up, agree, and each master has one replica online.
    pub fn wait_ready(&self) -> Result<()> {
        until("a complete cluster", START, || {
            self.agrees()?;
            let online = self.online_replicas()?;
            need(online == NODES / 2, online)
        })
    }

    /// Moves a slot and its keys to the node at `to`, from begin to end.
    pub fn move_slot(&self, slot: u16, to: &RedisServer) -> Result<()> {
        self.begin_move(slot, to)?.finish()
    }

    /// Begins to move a slot: until [`SlotMove::finish`], the old master answers ASK for keys that
    /// it no longer has, and the new one serves them to clients that say ASKING.
    pub fn begin_move<'a>(&'a self, slot: u16, to: &'a RedisServer) -> Result<SlotMove<'a>> {
        SlotMove::begin(self, self.master_of(slot)?, to, slot)
    }

    fn join(&self) -> Result<()> {
        let addresses: Vec<String> = self
            .nodes
            .iter()
            .map(|node| node.address().to_string())
            .collect();
        let mut arguments = vec!["--cluster", "create"];
        if let Some(password) = self.nodes[0].password() {
            arguments.splice(0..0, ["--no-auth-warning", "-a", password]);
        }
        arguments.extend(addresses.iter().map(String::as_str));
        arguments.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        program::output(&program::redis_cli()?, &env::temp_dir(), &arguments)?;
        Ok(())
    }

    fn agrees(&self) -> Result<()> {
        for node in self.running() {
            let seen = node.cli(&["CLUSTER", "INFO"])?;
            let whole = seen.contains("cluster_state:ok")
                && seen.contains("cluster_slots_ok:16384")
                && seen.contains(&format!("cluster_known_nodes:{NODES}"));
            need(whole, seen)?;
        }
        Ok(())
    }

    fn online_replicas(&self) -> Result<usize> {
        self.running().map(RedisServer::online_replicas).sum()
    }

    fn any(&self) -> Result<&RedisServer> {
        self.running()
            .next()
            .context("no node of the cluster is running")
    }

    fn running(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().filter(|node| node.is_running())
    }
}

fn with_cluster(options: RedisOptions) -> RedisOptions {
    options
        .replicated()
        .line("cluster-enabled yes")
        .line("cluster-node-timeout 1000")
        // A replica whose link was cut for long still takes over: the test wants the fail-over.
        .line("cluster-replica-validity-factor 0")
}
