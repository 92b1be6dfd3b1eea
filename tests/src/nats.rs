//! One NATS server with JetStream of its own.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::Port;
use crate::process::{Process, daemon, tail};
use crate::program;
use crate::wait::until;

const START: Duration = Duration::from_secs(20);

/// A server on loopback with its files in a temporary folder; both go with the handle. The program
/// is `nats-server` from PATH unless the environment variable `NATS_SERVER` names another.
#[derive(Debug)]
pub struct NatsServer {
    // Dropped in this order: the folder goes when nobody writes to it any more.
    process: Mutex<Option<Process>>,
    folder: TempDir,
    port: Port,
}

impl NatsServer {
    /// Starts a server and waits until it speaks.
    pub fn start() -> Result<Self> {
        let server = Self {
            process: Mutex::new(None),
            folder: tempfile::Builder::new().prefix("idem-nats-").tempdir()?,
            port: Port::take()?,
        };
        server.run()?;
        Ok(server)
    }

    /// Kills it, and starts it on the same port with what its disk holds.
    pub fn restart(&self) -> Result<()> {
        if let Some(mut process) = self.process().take() {
            process.kill()?;
        }
        self.run()
    }

    /// `nats://…`
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port.number())
    }

    /// Its process id, or None when it was stopped.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process().as_ref().map(Process::id)
    }

    fn run(&self) -> Result<()> {
        let program = program::find("nats-server", "NATS_SERVER", "nats-server")?;
        let log = self.folder.path().join("log");
        let data = self.folder.path().join("data");
        let port = self.port.number().to_string();
        let arguments = ["--addr", "127.0.0.1", "--port", &port, "--jetstream"];
        let mut arguments: Vec<_> = arguments.map(AsRef::as_ref).into();
        arguments.extend(["--store_dir".as_ref(), data.as_os_str()]);
        *self.process() = Some(daemon(&program, &arguments, &log)?);
        until("the start of a NATS server", START, || self.started())
            .and_then(|end| end)
            .with_context(|| format!("{} logged:\n{}", program.display(), tail(&log)))
    }

    /// Ok(Err) is an end for which nobody needs to wait.
    fn started(&self) -> Result<Result<()>> {
        match self.alive() {
            Ok(()) => self.greets().map(Ok),
            Err(ended) => Ok(Err(ended)),
        }
    }

    /// Whether it begins a conversation, and has JetStream.
    fn greets(&self) -> Result<()> {
        let stream = TcpStream::connect(("127.0.0.1", self.port.number()))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut greeting = String::new();
        BufReader::new(stream).read_line(&mut greeting)?;
        if !(greeting.starts_with("INFO ") && greeting.contains("\"jetstream\":true")) {
            bail!("it greets with {greeting:?}");
        }
        Ok(())
    }

    fn alive(&self) -> Result<()> {
        let mut guard = self.process();
        let process = guard.as_mut().context("the server was killed")?;
        match process.ended()? {
            None => Ok(()),
            Some(status) => bail!("the server ended: {status}"),
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
