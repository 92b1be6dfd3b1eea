//! A master, its replica and three Sentinels that fail over within a few seconds.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::port::Port;
use crate::process::{Process, daemon, tail};
use crate::program;
use crate::redis::{RedisOptions, RedisServer};
use crate::resp::{Reply, ask};
use crate::wait::{need, until};

/// The name under which the Sentinels know the master.
pub const MASTER: &str = "idem";

const START: Duration = Duration::from_secs(30);
const FAIL_OVER: Duration = Duration::from_secs(30);

/// Two Redis servers watched by three Sentinels (quorum 2, down after 2 s).
#[derive(Debug)]
pub struct Sentinels {
    watchers: Vec<Watcher>,
    servers: [RedisServer; 2],
}

impl Sentinels {
    /// Starts all five, and waits until the replica is online and each Sentinel knows the others
    /// and the replica: from then on a killed master is replaced.
    pub fn start(options: &RedisOptions) -> Result<Self> {
        let options = options.clone().replicated();
        let first = RedisServer::start(options.clone())?;
        let follow = format!("replicaof 127.0.0.1 {}", first.port());
        let second = RedisServer::start(options.line(follow))?;
        until("an online replica", START, || {
            need(first.online_replicas()? == 1, "none")
        })?;
        let watch = || Watcher::start(&first);
        let watchers = vec![watch()?, watch()?, watch()?];
        let group = Self {
            watchers,
            servers: [first, second],
        };
        group.wait_ready()?;
        Ok(group)
    }

    /// Waits until each Sentinel knows two others and a healthy replica, and the master has it
    /// online.
    pub fn wait_ready(&self) -> Result<()> {
        for watcher in &self.watchers {
            until("Sentinels that know each other", START, || {
                watcher.is_ready()
            })
            .with_context(|| tail(&watcher.log()))?;
        }
        until("an online replica", START, || {
            let online = self.master()?.online_replicas()?;
            need(online == 1, online)
        })
    }

    /// The addresses of the Sentinels, as `redis://…`.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.watchers
            .iter()
            .map(|watcher| format!("redis://{}/", watcher.address()))
            .collect()
    }

    /// Both servers, the first master first.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer; 2] {
        &self.servers
    }

    /// The master's address as the Sentinels give it to clients.
    pub fn master_address(&self) -> Result<SocketAddr> {
        self.watchers[0].master_address()
    }

    /// The server that the Sentinels call master now.
    pub fn master(&self) -> Result<&RedisServer> {
        let address = self.master_address()?;
        let found = self
            .servers
            .iter()
            .find(|server| server.address() == address);
        found.with_context(|| format!("no server of ours is at {address}"))
    }

    /// kill -9 on the current master, whose handle it gives: [`RedisServer::restart`] brings it
    /// back, as a replica once the Sentinels have seen it.
    pub fn kill_master(&self) -> Result<&RedisServer> {
        let master = self.master()?;
        master.kill()?;
        Ok(master)
    }

    /// Waits until all Sentinels name another master than `old` and that one takes writes; gives
    /// its handle.
    pub fn wait_failed_over(&self, old: &RedisServer) -> Result<&RedisServer> {
        let old = old.address();
        for watcher in &self.watchers {
            until("a fail-over", FAIL_OVER, || {
                let now = watcher.master_address()?;
                need(now != old, now)
            })
            .with_context(|| tail(&watcher.log()))?;
        }
        let new = self.master()?;
        until("a promoted replica", FAIL_OVER, || {
            let role = new.role()?;
            need(role == "master", role)
        })?;
        Ok(new)
    }
}

#[derive(Debug)]
struct Watcher {
    _process: Process,
    folder: TempDir,
    port: Port,
}

impl Watcher {
    fn start(master: &RedisServer) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("idem-sentinel-")
            .tempdir()?;
        let port = Port::take()?;
        let config = folder.path().join("sentinel.conf");
        fs::write(
            &config,
            sentinel_config(port.number(), folder.path(), master),
        )?;
        let program = program::redis_server()?;
        let arguments = [config.as_os_str(), "--sentinel".as_ref()];
        let process = daemon(&program, &arguments, &folder.path().join("log"))?;
        let watcher = Self {
            _process: process,
            folder,
            port,
        };
        until("the start of a Sentinel", START, || watcher.ask(&["PING"]))
            .with_context(|| tail(&watcher.log()))?;
        watcher.hurry();
        Ok(watcher)
    }

    /// Looks at the servers each second instead of each tenth. Redis 6.2 does not know the
    /// command and takes its time.
    fn hurry(&self) {
        let _ = self.ask(&["SENTINEL", "DEBUG", "info-period", "1000"]);
        let _ = self.ask(&["SENTINEL", "DEBUG", "publish-period", "500"]);
    }

    fn ask(&self, command: &[&str]) -> Result<Reply> {
        ask(self.address(), None, command)
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.number()).into()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn master_address(&self) -> Result<SocketAddr> {
        let reply = self.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER])?;
        let text = reply.to_string();
        let (host, port) = text.split_once('\n').context("no such master")?;
        Ok(format!("{host}:{port}").parse()?)
    }

    fn is_ready(&self) -> Result<()> {
        let master = self.ask(&["SENTINEL", "MASTER", MASTER])?;
        let others = field(&master, "num-other-sentinels");
        need(
            others == "2" && field(&master, "flags") == "master",
            &others,
        )?;
        let replicas = self.ask(&["SENTINEL", "REPLICAS", MASTER])?;
        let Reply::List(replicas) = replicas else {
            return need(false, replicas);
        };
        let healthy = |replica| field(replica, "master-link-status") == "ok";
        need(
            replicas.len() == 1 && replicas.iter().all(healthy),
            replicas,
        )
    }
}

/// Low limits, since tests wait for them. Less than 2 s would fail over for nothing: after each
/// fail-over a Sentinel reconnects to all servers, and it dials at most once a second.
fn sentinel_config(port: u16, folder: &Path, master: &RedisServer) -> String {
    let folder = folder.display();
    let login = master
        .password()
        .map(|password| format!("sentinel auth-pass {MASTER} {password}\n"));
    let config = format!(
        "bind 127.0.0.1\nport {port}\ndir {folder}\nlogfile {folder}/log\n\
         sentinel monitor {MASTER} 127.0.0.1 {} 2\n\
         sentinel down-after-milliseconds {MASTER} 2000\n\
         sentinel failover-timeout {MASTER} 10000\n",
        master.port()
    );
    config + &login.unwrap_or_default()
}

/// A value of an answer that alternates names and values; empty when it is not there.
fn field(reply: &Reply, name: &str) -> String {
    let Reply::List(items) = reply else {
        return String::new();
    };
    let pair = items
        .chunks_exact(2)
        .find(|pair| pair[0].to_string() == name);
    pair.map(|pair| pair[1].to_string()).unwrap_or_default()
}
