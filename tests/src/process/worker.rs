//! A program of this package as one more process on the same key.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Process, tied};

/// A child that is told things by lines on its stdin and answers by lines on its stdout; its
/// stderr is ours. All methods take `&self`; a line heard by one thread is heard by no other.
///
/// ```ignore
/// let worker = Worker::start(env!("CARGO_BIN_EXE_payer"), [redis.url()])?;
/// worker.say("pay A-1")?;
/// assert_eq!(worker.hear(SECOND)?, "executed");
/// worker.kill()?;
/// ```
#[derive(Debug)]
pub struct Worker {
    process: Mutex<Process>,
    stdin: Mutex<Option<ChildStdin>>,
    lines: Mutex<Receiver<String>>,
}

impl Worker {
    /// Starts `program`; in a test target of this package `env!("CARGO_BIN_EXE_<name>")` is the
    /// path of its binary `<name>`. The environment is inherited.
    pub fn start<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self> {
        let mut command = tied(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Process::start(command)?;
        let stdin = process.child().stdin.take();
        let stdout = process.child().stdout.take().context("no stdout")?;
        let (heard, lines) = mpsc::channel();
        thread::Builder::new().spawn(move || listen(stdout, &heard))?;
        Ok(Self {
            process: Mutex::new(process),
            stdin: Mutex::new(stdin),
            lines: Mutex::new(lines),
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        lock(&self.process).id()
    }

    /// Writes one line to its stdin.
    pub fn say(&self, line: &str) -> Result<()> {
        let mut stdin = lock(&self.stdin);
        let pipe = stdin.as_mut().context("its stdin is closed")?;
        writeln!(pipe, "{line}")?;
        Ok(pipe.flush()?)
    }

    /// The next line of its stdout, without the line end.
    ///
    /// # Errors
    /// When there is none within `limit`, or the worker has ended and all its lines were heard.
    pub fn hear(&self, limit: Duration) -> Result<String> {
        let line = lock(&self.lines).recv_timeout(limit);
        line.with_context(|| format!("worker {} said nothing within {limit:?}", self.id()))
    }

    /// Closes its stdin, and waits for it to end.
    pub fn finish(&self, limit: Duration) -> Result<ExitStatus> {
        lock(&self.stdin).take();
        lock(&self.process).wait(limit)
    }

    /// How it ended, or None while it runs.
    pub fn ended(&self) -> Result<Option<ExitStatus>> {
        lock(&self.process).ended()
    }

    /// kill -9, and reaps it.
    pub fn kill(&self) -> Result<()> {
        lock(&self.process).kill()
    }

    /// SIGSTOP; when this returns, it has stopped.
    pub fn freeze(&self) -> Result<()> {
        lock(&self.process).freeze()
    }

    /// SIGCONT.
    pub fn thaw(&self) -> Result<()> {
        lock(&self.process).thaw()
    }
}

fn listen(stdout: ChildStdout, heard: &Sender<String>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if heard.send(line).is_err() {
            return;
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
