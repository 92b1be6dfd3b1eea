//! The program, started in a temporary folder, killed, started again.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use idem_tests::process::{Process, tied};
use idem_tests::redis::RedisServer;
use idem_tests::wait::{need, until};
use tempfile::TempDir;

use crate::client::Client;

const START: Duration = Duration::from_secs(30);

/// Where the orders are, and where the records: what servers share.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
    urls: Vec<(&'static str, String)>,
}

/// A running service.
#[derive(Debug)]
pub(crate) struct Service {
    process: Process,
    place: Rc<Place>,
    log: PathBuf,
    client: Client,
}

impl Place {
    /// Records in the process.
    pub(crate) fn alone() -> Result<Rc<Self>> {
        Self::new([])
    }

    /// Records in Redis.
    pub(crate) fn with(redis: &RedisServer) -> Result<Rc<Self>> {
        Self::new([("REDIS_URL", redis.url())])
    }

    /// Orders in the database at this address.
    pub(crate) fn on(database_url: String) -> Result<Rc<Self>> {
        Self::new([("DATABASE_URL", database_url)])
    }

    /// Messages from the broker at this address.
    pub(crate) fn fed_by(broker_url: String) -> Result<Rc<Self>> {
        Self::new([("AMQP_URL", broker_url)])
    }

    /// Both.
    pub(crate) fn on_and_fed_by(database_url: String, broker_url: String) -> Result<Rc<Self>> {
        Self::new([("DATABASE_URL", database_url), ("AMQP_URL", broker_url)])
    }

    /// The file with the orders that are in no other database, and with the provider's ledger.
    pub(crate) fn orders_file(&self) -> PathBuf {
        self.folder.path().join("orders.sqlite")
    }

    fn new(urls: impl Into<Vec<(&'static str, String)>>) -> Result<Rc<Self>> {
        let folder = tempfile::Builder::new().prefix("idem-orders-").tempdir()?;
        let urls = urls.into();
        Ok(Rc::new(Self { folder, urls }))
    }

    /// Starts a service here; `name` tells its log from others'.
    pub(crate) fn start(self: &Rc<Self>, name: &str) -> Result<Service> {
        self.spawn(name)?.ready()
    }

    /// Starts so many before any of them is waited for.
    pub(crate) fn start_at_once(self: &Rc<Self>, count: usize) -> Result<Vec<Service>> {
        let starting: Result<Vec<_>> = (0..count)
            .map(|number| self.spawn(&format!("service-{number}")))
            .collect();
        starting?.into_iter().map(Starting::ready).collect()
    }

    fn spawn(self: &Rc<Self>, name: &str) -> Result<Starting> {
        let file = |suffix| self.folder.path().join(format!("{name}.{suffix}"));
        let (output, log) = (file("out"), file("log"));
        let mut command = tied(env!("CARGO_BIN_EXE_idem-examples"));
        command
            .env("LISTEN", "127.0.0.1:0")
            .env("ORDERS_FILE", self.orders_file())
            .envs(["REDIS_URL", "DATABASE_URL", "AMQP_URL"].map(|unset| (unset, "")))
            .envs(self.urls.iter().cloned())
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(&log)?);
        Ok(Starting {
            process: Process::start(command)?,
            place: self.clone(),
            output,
            log,
        })
    }
}

/// A service that has not said yet where it is.
#[derive(Debug)]
struct Starting {
    process: Process,
    place: Rc<Place>,
    output: PathBuf,
    log: PathBuf,
}

impl Starting {
    fn ready(mut self) -> Result<Service> {
        let base = until("the start of the service", START, || {
            self.address().transpose().context("it has said nothing")
        })??;
        Ok(Service {
            process: self.process,
            place: self.place,
            log: self.log,
            client: Client::new(base),
        })
    }

    /// `Ok(None)` until it has said so; an end is nothing to wait for.
    fn address(&mut self) -> Result<Option<String>> {
        if let Some(status) = self.process.ended()? {
            bail!("it ended: {status}\n{}", fs::read_to_string(&self.log)?);
        }
        let text = fs::read_to_string(&self.output)?;
        let line = text.lines().next().unwrap_or_default();
        let address = line.strip_prefix("order page  ");
        Ok(address.map(|address| address.trim_end_matches('/').to_owned()))
    }
}

impl Service {
    /// A service alone in its place.
    pub(crate) fn start() -> Result<Self> {
        Place::alone()?.start("service")
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// kill -9, and a new one in the same place.
    pub(crate) fn kill_and_restart(mut self) -> Result<Self> {
        self.process.kill()?;
        self.place.start("restarted")
    }

    pub(crate) fn freeze(&mut self) -> Result<()> {
        self.process.freeze()
    }

    pub(crate) fn thaw(&mut self) -> Result<()> {
        self.process.thaw()
    }

    /// SIGTERM.
    pub(crate) fn terminate(&mut self) -> Result<()> {
        self.process.terminate()
    }

    pub(crate) fn wait_for_end(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.process.wait(limit)
    }

    pub(crate) fn wait_for_log(&self, words: &str) -> Result<()> {
        until("a line in the log", START, || {
            let log = fs::read_to_string(&self.log)?;
            need(log.contains(words), log)
        })
    }
}
