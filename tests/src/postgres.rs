//! One PostgreSQL server of its own.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::getuid;
use tempfile::TempDir;

use crate::port::Port;
use crate::process::{Process, tail};
use crate::program;
use crate::wait::{need, until};

const START: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(10);

/// A server on loopback with its files in a temporary folder; both go with the handle. The
/// programs are those in the folder `POSTGRES_BIN`, else in PATH, else Debian's newest.
///
/// Nothing waits for the disk (`fsync` is off), unless it is started as durable: a crash of the
/// server loses nothing, a power failure would. It is stopped by SIGQUIT, which ends it at once but
/// lets it give back its shared memory; after a SIGKILL that stays until the machine is started
/// again.
/// The server refuses to run as root, so for root it runs as `postgres`.
#[derive(Debug)]
pub struct PostgresServer {
    // Dropped in this order: the folder goes when nobody writes to it any more.
    process: Mutex<Option<Process>>,
    folder: TempDir,
    port: Port,
    fsync: &'static str,
}

impl PostgresServer {
    /// Starts a server with an empty database `postgres` and waits until it answers.
    pub fn start() -> Result<Self> {
        Self::start_with("off")
    }

    /// The same, with commits that wait for the disk: for measurements.
    pub fn start_durable() -> Result<Self> {
        Self::start_with("on")
    }

    fn start_with(fsync: &'static str) -> Result<Self> {
        let server = Self {
            process: Mutex::new(None),
            folder: tempfile::Builder::new()
                .prefix("idem-postgres-")
                .tempdir()?,
            port: Port::take()?,
            fsync,
        };
        // Another user makes the folder with the data in it.
        fs::set_permissions(server.folder.path(), Permissions::from_mode(0o777))?;
        server.initialise()?;
        server.run()?;
        Ok(server)
    }

    /// Stops it as a crash would, and starts it on the same port with what its disk holds.
    pub fn restart(&self) -> Result<()> {
        self.stop()?;
        self.run()
    }

    /// Starts it on the same port with what its disk holds.
    pub fn start_again(&self) -> Result<()> {
        self.run()
    }

    /// The process id of the postmaster, or None when it was stopped.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process().as_ref().map(Process::id)
    }

    /// Stops it as a crash would, until it is started [again](Self::start_again).
    pub fn stop(&self) -> Result<()> {
        if let Some(mut process) = self.process().take() {
            process.quit(STOP)?;
        }
        Ok(())
    }

    /// `postgres://…`, as the superuser, without TLS.
    #[must_use]
    pub fn url(&self) -> String {
        Self::url_at(self.address())
    }

    /// The same of one at `address`, which may be a proxy before it.
    #[must_use]
    pub fn url_at(address: SocketAddr) -> String {
        format!("postgres://postgres@{address}/postgres?sslmode=disable")
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.number()).into()
    }

    fn initialise(&self) -> Result<()> {
        let mut command = Command::new(bin("initdb")?);
        command.args(["--auth=trust", "--username=postgres", "--encoding=UTF8"]);
        command.args(["--locale=C", "--wal-segsize=1", "--no-sync", "--pgdata"]);
        let mut command = unprivileged(command.arg(self.data()));
        let output = command.current_dir(self.folder.path()).output()?;
        if !output.status.success() {
            bail!("initdb: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    fn run(&self) -> Result<()> {
        let output = File::options().create(true).append(true).open(self.log())?;
        let mut command = Command::new(bin("postgres")?);
        command.arg("-D").arg(self.data());
        for setting in [
            format!("port={}", self.port.number()),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            format!("fsync={}", self.fsync),
            "max_connections=300".to_owned(),
        ] {
            command.arg("-c").arg(setting);
        }
        let mut command = unprivileged(&command);
        command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        *self.process() = Some(Process::start(command)?);
        until("the start of a PostgreSQL server", START, || self.started())
            .and_then(|end| end)
            .with_context(|| format!("postgres logged:\n{}", tail(&self.log())))
    }

    /// Ok(Err) is an end for which nobody needs to wait.
    fn started(&self) -> Result<Result<()>> {
        if let Err(ended) = self.alive() {
            return Ok(Err(ended));
        }
        let ready = Command::new(bin("pg_isready")?)
            .args(["-q", "-h", "127.0.0.1", "-p"])
            .arg(self.port.number().to_string())
            .status()?;
        need(ready.success(), ready).map(Ok)
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

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Whatever is left is killed with the process's handle.
        let _ = self.stop();
    }
}

/// The command as a user that is not root, stopped when this process ends.
fn unprivileged(command: &Command) -> Command {
    let mut changed = Command::new("setpriv");
    changed.args(["--pdeathsig", "QUIT"]);
    if getuid().is_root() {
        changed.args([
            "--reuid",
            "postgres",
            "--regid",
            "postgres",
            "--clear-groups",
        ]);
    }
    changed.arg(command.get_program()).args(command.get_args());
    changed
}

fn bin(name: &str) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("POSTGRES_BIN") {
        return Ok(Path::new(&folder).join(name));
    }
    program::on_path(name).or_else(|| debian(name)).with_context(|| {
        format!("`{name}` is not installed: run `apt-get install postgresql`, or set POSTGRES_BIN to its folder")
    })
}

/// Debian keeps the programs of each version in a folder of its own.
fn debian(name: &str) -> Option<PathBuf> {
    let version =
        |path: &PathBuf| -> Option<u32> { path.file_name().and_then(OsStr::to_str)?.parse().ok() };
    fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("bin").join(name).is_file())
        .max_by_key(version)
        .map(|path| path.join("bin").join(name))
}
