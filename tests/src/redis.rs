//! One Redis server of its own: started, killed, frozen, restarted.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::Port;
use crate::process::{Process, daemon, tail};
use crate::resp::{Reply, ask};
use crate::wait::{need, until};

mod options;
pub use options::{Fsync, RedisOptions};

const START: Duration = Duration::from_secs(20);
const COPY: Duration = Duration::from_secs(10);

/// A Redis (or Valkey) server on loopback with its files in a temporary folder; both go with the
/// handle. The program is `redis-server` from PATH unless the options or the environment variable
/// `REDIS_SERVER` name another.
#[derive(Debug)]
pub struct RedisServer {
    // Dropped in this order: the folder goes when nobody writes to it any more.
    process: Mutex<Option<Process>>,
    folder: TempDir,
    port: Port,
    options: RedisOptions,
}

impl RedisServer {
    /// Starts a server and waits until it answers PING: nothing on disk, no limit of memory,
    /// unless the options say so.
    pub fn start(options: RedisOptions) -> Result<Self> {
        let server = Self {
            process: Mutex::new(None),
            folder: tempfile::Builder::new().prefix("idem-redis-").tempdir()?,
            port: Port::take()?,
            options,
        };
        server.configure()?;
        server.run()?;
        Ok(server)
    }

    /// kill -9: what was not on disk is gone. The port stays reserved, and dialling it is refused.
    pub fn kill(&self) -> Result<()> {
        match self.process().take() {
            Some(mut process) => process.kill(),
            None => Ok(()),
        }
    }

    /// SIGSTOP: connections stay open, new ones are accepted by the kernel, nothing answers. What
    /// clients send meanwhile is executed after [`RedisServer::thaw`].
    pub fn freeze(&self) -> Result<()> {
        self.process()
            .as_mut()
            .context("the server was killed")?
            .freeze()
    }

    /// SIGCONT.
    pub fn thaw(&self) -> Result<()> {
        self.process()
            .as_mut()
            .context("the server was killed")?
            .thaw()
    }

    /// Kills it and starts it on the same port with what its disk holds: everything written with
    /// [`RedisOptions::aof`], nothing without.
    pub fn restart(&self) -> Result<()> {
        self.kill()?;
        self.run()
    }

    /// Kills it and starts it on the same port with its data folder emptied.
    pub fn restart_empty(&self) -> Result<()> {
        self.kill()?;
        fs::remove_dir_all(self.data())?;
        self.run()
    }

    /// Whether the process lives (a frozen one does).
    pub fn is_running(&self) -> bool {
        self.alive().is_ok()
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.number()).into()
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://…`, with the password if there is one.
    #[must_use]
    pub fn url(&self) -> String {
        match self.options.secret() {
            Some(password) => self.url_as("", password),
            None => format!("redis://{}/", self.address()),
        }
    }

    /// `redis://user:password@…`, as it is written: neither is escaped.
    #[must_use]
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("redis://{user}:{password}@{}/", self.address())
    }

    /// Runs one command as the default user on a connection of its own, and gives the answer as
    /// `redis-cli` prints it.
    pub fn cli<A: AsRef<[u8]>>(&self, command: &[A]) -> Result<String> {
        Ok(self.command(command)?.to_string())
    }

    /// The same, with the answer as it came.
    pub fn command<A: AsRef<[u8]>>(&self, command: &[A]) -> Result<Reply> {
        ask(self.address(), self.options.secret(), command)
    }

    /// The value of `field` in INFO, for instance `used_memory` or `cmdstat_evalsha`.
    pub fn info(&self, field: &str) -> Result<String> {
        let text = self.cli(&["INFO", "everything"])?;
        let found = text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(found
            .with_context(|| format!("INFO has no {field}"))?
            .to_owned())
    }

    /// How often the server has run `command` since its start, for instance `evalsha`, refused and
    /// failed calls included (INFO commandstats).
    pub fn calls(&self, command: &str) -> Result<u64> {
        let text = self.cli(&["INFO", "commandstats"])?;
        let field = format!("cmdstat_{}:calls=", command.to_lowercase());
        let found = text.lines().find_map(|line| line.strip_prefix(&field));
        let count = found.and_then(|rest| rest.split(',').next()).unwrap_or("0");
        Ok(count.parse()?)
    }

    /// How many keys it has, and how many of them never expire, or only after `longest`.
    pub fn keys(&self, longest: Duration) -> Result<(usize, usize)> {
        const COUNT: &str = "local all, endless, cursor = 0, 0, '0' \
            repeat local page = redis.call('SCAN', cursor, 'COUNT', 1000) cursor = page[1] \
            for _, key in ipairs(page[2]) do all = all + 1 local left = redis.call('PTTL', key) \
            if left == -1 or left > tonumber(ARGV[1]) then endless = endless + 1 end end \
            until cursor == '0' return all .. ' ' .. endless";
        let longest = longest.as_millis().to_string();
        let line = self.cli(&["EVAL", COUNT, "0", &longest])?;
        let (all, endless) = line.split_once(' ').context(line.clone())?;
        Ok((all.parse()?, endless.parse()?))
    }

    /// Cuts the link to its replicas and nothing else: clients and Sentinels notice nothing, later
    /// writes reach nobody. Needs [`RedisOptions::replicated`].
    pub fn cut_replicas(&self) -> Result<()> {
        self.cli(&["ACL", "SETUSER", options::REPLICATOR, "off"])?;
        self.cli(&["CLIENT", "KILL", "TYPE", "replica"])?;
        Ok(())
    }

    /// Undoes [`RedisServer::cut_replicas`]; the replicas come back within about a second.
    pub fn mend_replicas(&self) -> Result<()> {
        self.cli(&["ACL", "SETUSER", options::REPLICATOR, "on"])?;
        Ok(())
    }

    /// How many replicas receive its writes (`state=online`).
    pub fn online_replicas(&self) -> Result<usize> {
        Ok(self.confirmed()?.len())
    }

    /// Waits until every online replica, at least one, has confirmed what was written before the
    /// call. WAIT would not do: it speaks of the writes of its own connection.
    pub fn wait_copied(&self) -> Result<()> {
        let written: u64 = self.info("master_repl_offset")?.parse()?;
        until("the replicas' confirmation", COPY, || {
            let confirmed = self.confirmed()?;
            let copied = !confirmed.is_empty() && confirmed.iter().all(|at| *at >= written);
            need(copied, confirmed)
        })
    }

    /// The offsets that the online replicas have confirmed, from lines such as
    /// `slave0:ip=127.0.0.1,port=7001,state=online,offset=42,lag=0`.
    fn confirmed(&self) -> Result<Vec<u64>> {
        let text = self.cli(&["INFO", "replication"])?;
        let offset = |line: &str| {
            line.split(",offset=")
                .nth(1)?
                .split(',')
                .next()?
                .parse()
                .ok()
        };
        let online = |line: &&str| line.starts_with("slave") && line.contains("state=online");
        Ok(text.lines().filter(online).filter_map(offset).collect())
    }

    /// `master` or `slave`.
    pub fn role(&self) -> Result<String> {
        self.info("role")
    }

    /// The folder with its data files (`dump.rdb`, `appendonlydir/`), to be damaged or truncated
    /// while it is down.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.options.secret()
    }

    /// Once: what Sentinel or CONFIG REWRITE change in the file later holds after a restart.
    fn configure(&self) -> Result<()> {
        let text = self.options.config(self.port(), &self.data(), &self.log());
        Ok(fs::write(self.config(), text)?)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("redis.conf")
    }

    fn run(&self) -> Result<()> {
        fs::create_dir_all(self.data())?;
        let program = self.options.program()?;
        *self.process() = Some(daemon(&program, &[self.config().as_os_str()], &self.log())?);
        until("the start of a Redis server", START, || self.started())
            .and_then(|end| end)
            .with_context(|| format!("{} logged:\n{}", program.display(), tail(&self.log())))
    }

    /// Ok(Err) is an end for which nobody needs to wait.
    fn started(&self) -> Result<Result<()>> {
        match self.alive() {
            Ok(_) => self.answers().map(Ok),
            ended => Ok(ended.map(drop)),
        }
    }

    /// Whether our own process, not a stranger on the same port, answers.
    fn answers(&self) -> Result<()> {
        let ours = self.alive()?;
        self.command(&["PING"])?;
        let answering = self.info("process_id")?;
        need(answering == ours.to_string(), answering)
    }

    fn alive(&self) -> Result<u32> {
        let mut guard = self.process();
        let process = guard.as_mut().context("the server was killed")?;
        match process.ended()? {
            None => Ok(process.id()),
            Some(status) => bail!("the server ended: {status}"),
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
