//! One RabbitMQ broker of its own.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::Port;
use crate::process::{Process, daemon, tail, tied};
use crate::program;
use crate::wait::until;

const START: Duration = Duration::from_mins(3);

/// A broker on loopback with its files in a temporary folder; both go with the handle. The program
/// is Debian's, unless the environment variable `RABBITMQ_SERVER` names another: the script that
/// becomes the broker, not the one that changes the user first.
///
/// A node finds its name in a port mapper, `epmd`. It gets one of its own, which ends with the
/// handle too; a shared one would outlive the tests.
#[derive(Debug)]
pub struct RabbitServer {
    // Dropped in this order: the folder goes when nobody writes to it any more.
    process: Mutex<Option<Process>>,
    mapper: Process,
    folder: TempDir,
    port: Port,
    distribution: Port,
    mapper_port: Port,
}

impl RabbitServer {
    /// Starts a broker and waits until it speaks.
    pub fn start() -> Result<Self> {
        Self::start_with("[].")
    }

    /// The same, with settings of its advanced configuration file, which are Erlang terms.
    pub fn start_with(settings: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("idem-rabbit-").tempdir()?;
        let mapper_port = Port::take()?;
        let server = Self {
            process: Mutex::new(None),
            mapper: map_names(folder.path(), &mapper_port)?,
            folder,
            port: Port::take()?,
            distribution: Port::take()?,
            mapper_port,
        };
        fs::write(server.path("enabled_plugins"), "[].\n")?;
        fs::write(server.path("rabbitmq.conf"), server.config())?;
        fs::write(server.path("advanced.config"), format!("{settings}\n"))?;
        server.run()?;
        Ok(server)
    }

    /// kill -9. The port stays reserved, and dialling it is refused.
    pub fn kill(&self) -> Result<()> {
        match self.process().take() {
            Some(mut process) => process.kill(),
            None => Ok(()),
        }
    }

    /// Kills it, and starts it on the same port with what its disk holds.
    pub fn restart(&self) -> Result<()> {
        self.kill()?;
        self.run()
    }

    /// `amqp://…`, as a user with all rights.
    #[must_use]
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port.number())
    }

    /// Runs `rabbitmqctl` with these arguments, and gives what it printed.
    pub fn control(&self, arguments: &[&str]) -> Result<String> {
        let program = program::find(
            "/usr/lib/rabbitmq/bin/rabbitmqctl",
            "RABBITMQCTL",
            "rabbitmq-server",
        )?;
        let mut command = Command::new(program);
        self.place(&mut command);
        let output = command.args(arguments).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!(
                "rabbitmqctl {arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The process ids of the broker and its port mapper; none of a broker that was killed.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        let broker = self.process().as_ref().map(Process::id);
        broker.into_iter().chain([self.mapper.id()]).collect()
    }

    fn config(&self) -> String {
        let port = self.port.number();
        // A nearly full disk would make it block publishers.
        format!("listeners.tcp.1 = 127.0.0.1:{port}\ndisk_free_limit.absolute = 1MB\n")
    }

    fn run(&self) -> Result<()> {
        let output = File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))?;
        let program = program::find(
            "/usr/lib/rabbitmq/bin/rabbitmq-server",
            "RABBITMQ_SERVER",
            "rabbitmq-server",
        )?;
        let mut command = tied(program);
        self.place(&mut command);
        command
            // Then the script becomes the broker instead of its parent, and dies with us.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("RABBITMQ_DIST_PORT", self.distribution.number().to_string())
            .env("RABBITMQ_CONFIG_FILE", self.path("rabbitmq.conf"))
            .env(
                "RABBITMQ_ADVANCED_CONFIG_FILE",
                self.path("advanced.config"),
            )
            .env(
                "RABBITMQ_ENABLED_PLUGINS_FILE",
                self.path("enabled_plugins"),
            )
            .env("RABBITMQ_MNESIA_BASE", self.path("mnesia"))
            .env("RABBITMQ_LOG_BASE", self.path("logs"))
            .env("RABBITMQ_LOGS", "-")
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1}",
            )
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        *self.process() = Some(Process::start(command)?);
        until("the start of a RabbitMQ broker", START, || self.started())
            .and_then(|end| end)
            .with_context(|| format!("it logged:\n{}", tail(&self.path("log"))))
    }

    /// Where programs of this broker find it, and the secret that they share.
    fn place(&self, command: &mut Command) {
        let name = format!("idem-{}@localhost", self.port.number());
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("RABBITMQ_NODENAME", name)
            .env("ERL_EPMD_PORT", self.mapper_port.number().to_string())
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
    }

    /// Ok(Err) is an end for which nobody needs to wait.
    fn started(&self) -> Result<Result<()>> {
        match self.alive() {
            Ok(()) => self.speaks().map(Ok),
            Err(ended) => Ok(Err(ended)),
        }
    }

    /// Whether it answers the header of the protocol with a frame of its first method.
    fn speaks(&self) -> Result<()> {
        const METHOD: u8 = 1;
        let mut stream = TcpStream::connect(("127.0.0.1", self.port.number()))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"AMQP\x00\x00\x09\x01")?;
        let mut frame = [0; 7];
        stream.read_exact(&mut frame)?;
        if frame[0] != METHOD {
            bail!("it answers {frame:?}");
        }
        Ok(())
    }

    fn alive(&self) -> Result<()> {
        let mut guard = self.process();
        let process = guard.as_mut().context("the broker was killed")?;
        match process.ended()? {
            None => Ok(()),
            Some(status) => bail!("the broker ended: {status}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a port mapper and waits until it listens.
fn map_names(folder: &Path, port: &Port) -> Result<Process> {
    let program = program::find("epmd", "EPMD", "erlang-base")?;
    let number = port.number().to_string();
    let arguments = ["-port", &number, "-address", "127.0.0.1"].map(AsRef::as_ref);
    let mapper = daemon(&program, &arguments, &folder.join("epmd"))?;
    until("the start of a port mapper", START, || {
        Ok(TcpStream::connect(("127.0.0.1", port.number()))?)
    })?;
    Ok(mapper)
}
