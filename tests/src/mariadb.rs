//! One MariaDB server of its own.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::Port;
use crate::process::{Process, daemon, tail};
use crate::program;
use crate::wait::until;

const START: Duration = Duration::from_secs(30);

/// Root has to say that it means it; of anybody else the server takes no notice of it.
const AS_ROOT: &str = "--user=root";

/// A server on loopback with its files in a temporary folder; both go with the handle. The
/// programs are `mariadbd` and `mariadb-install-db` from PATH unless the environment variables
/// `MARIADBD` and `MARIADB_INSTALL_DB` name others.
///
/// Nothing waits for the disk, and everybody on this machine may do everything.
#[derive(Debug)]
pub struct MariaDbServer {
    // Dropped in this order: the folder goes when nobody writes to it any more.
    process: Mutex<Option<Process>>,
    folder: TempDir,
    port: Port,
    options: &'static [&'static str],
}

impl MariaDbServer {
    /// Starts a server with an empty database `test` and waits until it answers.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// The same, with further options.
    pub fn start_with(options: &'static [&'static str]) -> Result<Self> {
        let server = Self {
            process: Mutex::new(None),
            folder: tempfile::Builder::new().prefix("idem-mariadb-").tempdir()?,
            port: Port::take()?,
            options,
        };
        server.initialise()?;
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

    /// `mysql://…` of the database `test`, as a user with all rights, without TLS.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "mysql://root@127.0.0.1:{}/test?ssl-mode=disabled",
            self.port.number()
        )
    }

    /// Its process id, or None when it was stopped.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process().as_ref().map(Process::id)
    }

    fn initialise(&self) -> Result<()> {
        let install = program::find("mariadb-install-db", "MARIADB_INSTALL_DB", "mariadb-server")?;
        let data = format!("--datadir={}", self.data().display());
        let own = format!("--tmpdir={}", self.folder.path().display());
        let arguments = [
            "--no-defaults",
            "--skip-test-db",
            "--skip-name-resolve",
            "--auth-root-authentication-method=normal",
            AS_ROOT,
            &data,
            // One that starts deletes the temporary tables of all others in its folder.
            &own,
        ];
        program::output(&install, self.folder.path(), &arguments)?;
        // A database is a folder.
        Ok(fs::create_dir_all(self.data().join("test"))?)
    }

    fn run(&self) -> Result<()> {
        let program = program::find("mariadbd", "MARIADBD", "mariadb-server")?;
        let path = |option: &str, path: &Path| {
            let mut argument = OsString::from(option);
            argument.push(path);
            argument
        };
        let mut arguments: Vec<OsString> = [
            "--no-defaults",
            AS_ROOT,
            "--bind-address=127.0.0.1",
            "--skip-grant-tables",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-file-size=8M",
            "--max-connections=300",
        ]
        .map(OsString::from)
        .into();
        arguments.extend(self.options.iter().map(OsString::from));
        arguments.push(format!("--port={}", self.port.number()).into());
        arguments.push(path("--datadir=", &self.data()));
        arguments.push(path("--tmpdir=", self.folder.path()));
        arguments.push(path("--socket=", &self.folder.path().join("socket")));
        arguments.push(path("--pid-file=", &self.folder.path().join("pid")));
        let arguments: Vec<_> = arguments.iter().map(AsRef::as_ref).collect();
        *self.process() = Some(daemon(&program, &arguments, &self.log())?);
        until("the start of a MariaDB server", START, || self.started())
            .and_then(|end| end)
            .with_context(|| format!("{} logged:\n{}", program.display(), tail(&self.log())))
    }

    /// Ok(Err) is an end for which nobody needs to wait.
    fn started(&self) -> Result<Result<()>> {
        match self.alive() {
            Ok(()) => self.greets().map(Ok),
            Err(ended) => Ok(Err(ended)),
        }
    }

    /// Whether it begins a conversation: a header of four bytes, then the protocol's version.
    fn greets(&self) -> Result<()> {
        const PROTOCOL: u8 = 10;
        let mut stream = TcpStream::connect(("127.0.0.1", self.port.number()))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut greeting = [0; 5];
        stream.read_exact(&mut greeting)?;
        if greeting[4] != PROTOCOL {
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

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
