//! Child processes that never outlive the test: [`Process`] for servers, [`Worker`] for programs
//! of this package that a suite talks to by lines.
//!
//! A handle kills and reaps its child when it is dropped. A handle in a `static` is never dropped,
//! and a killed test drops nothing: for these the kernel kills the child (`setpriv --pdeathsig`)
//! when the thread that started it ends, so children are started by one thread that lives as long
//! as the process.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::program;
use crate::wait::{need, until};

mod worker;
pub use worker::Worker;

struct Job {
    command: Command,
    answer: Sender<io::Result<Child>>,
}

static STARTER: LazyLock<Sender<Job>> = LazyLock::new(|| {
    let (jobs, orders) = mpsc::channel::<Job>();
    // A thread that cannot start drops `orders`, which the first job reports.
    let _ = thread::Builder::new()
        .name("process-starter".into())
        .spawn(move || {
            for mut job in orders {
                let _ = job.answer.send(job.command.spawn());
            }
        });
    jobs
});

/// A command that runs `program` and dies with this process.
pub fn tied(program: impl AsRef<OsStr>) -> Command {
    let Some(setpriv) = program::on_path("setpriv") else {
        return Command::new(program);
    };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Starts a server; what it says before it opens its log goes to the same file.
pub(crate) fn daemon(program: &Path, arguments: &[&OsStr], log: &Path) -> Result<Process> {
    let output = File::options().create(true).append(true).open(log)?;
    let mut command = tied(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    Process::start(command)
}

/// A running child. Dropping it kills it by its pid and reaps it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
}

impl Process {
    /// Starts a command made by [`tied`].
    pub fn start(command: Command) -> Result<Self> {
        let (answer, started) = mpsc::channel();
        let shown = format!("{command:?}");
        STARTER
            .send(Job { command, answer })
            .ok()
            .context("the starter thread is gone")?;
        let child = started
            .recv()?
            .with_context(|| format!("cannot start {shown}"))?;
        let pid = Pid::from_child(&child);
        let process = Self { child, pid };
        until("a program to be executed", Duration::from_secs(5), || {
            process.is_tied()
        })?;
        Ok(process)
    }

    /// Past `setpriv`: only then does the child die with us.
    fn is_tied(&self) -> Result<()> {
        let comm = fs::read_to_string(format!("/proc/{}/comm", self.id())).unwrap_or_default();
        need(comm.trim_end() != "setpriv", comm)
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, or None while it runs.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        until("the end of a process", limit, || {
            self.ended()?.context("it is running")
        })
    }

    /// kill -9, and reaps it. Nothing happens when it has ended already.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM.
    pub fn terminate(&mut self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// SIGQUIT, and waits for the end.
    pub(crate) fn quit(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.signal(Signal::QUIT)?;
        self.wait(limit)
    }

    /// SIGSTOP; when this returns, the process has stopped.
    pub fn freeze(&mut self) -> Result<()> {
        self.signal(Signal::STOP)?;
        self.heard_of(WaitIdOptions::STOPPED)
    }

    /// SIGCONT; when this returns, the process may run again.
    pub fn thaw(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        // Only a child that is not reaped yet still owns its pid.
        if let Some(status) = self.ended()? {
            bail!("process {} has ended: {status}", self.id());
        }
        Ok(kill_process(self.pid, signal)?)
    }

    fn heard_of(&self, change: WaitIdOptions) -> Result<()> {
        let options = change | WaitIdOptions::NOHANG;
        until("a signal to take effect", Duration::from_secs(5), || {
            waitid(WaitId::Pid(self.pid), options)?.context("not yet")?;
            Ok(())
        })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The last lines of a log file, for error messages.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
