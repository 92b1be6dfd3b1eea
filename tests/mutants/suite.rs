//! Mutants of statements that a whole suite has to judge: it runs as a program of its own, against
//! a server behind a relay, or with SQLite in it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use idem_tests::mariadb::MariaDbServer;
use idem_tests::postgres::PostgresServer;

use crate::kill::Killer;
use crate::mutant::Edit;
use crate::relay::Relay;
use crate::stores::{Trial, twice};
use crate::wire::Protocol;

/// Tests of a program of this package.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suite {
    pub(crate) program: &'static str,
    /// What the names of its tests begin with.
    pub(crate) tests: &'static str,
    /// Tests with servers of their own, which no relay stands before; or slow ones, beside others.
    pub(crate) but: &'static [&'static str],
    /// None where the database is SQLite.
    pub(crate) protocol: Option<Protocol>,
}

/// Far more than the suite takes, unless it waits for what never comes.
const ENDLESS: Duration = Duration::from_mins(5);

impl Suite {
    /// Whether cargo has built it, which it does not for another suite.
    pub(crate) fn is_built(&self) -> bool {
        self.path().is_some()
    }

    /// What falls has to fall again, on another server.
    pub(crate) fn try_out(&self, edit: &Edit) -> Trial {
        twice(|only| match only {
            Some(Killer::Test(name)) => self.try_once(Some(edit.clone()), Some(name)),
            _ => self.try_once(Some(edit.clone()), None),
        })
    }

    pub(crate) fn try_once(&self, edit: Option<Edit>, only: Option<&str>) -> Trial {
        // What makes their folders is not made for several at once.
        static START: Mutex<()> = Mutex::new(());
        let Some(protocol) = self.protocol else {
            return self.run_with_sqlite(edit, only);
        };
        let turn = START.lock().unwrap_or_else(PoisonError::into_inner);
        if protocol == Protocol::MySql {
            let server = MariaDbServer::start().unwrap();
            drop(turn);
            self.run_behind_a_relay(&server.url(), protocol, edit, only)
        } else {
            let server = PostgresServer::start().unwrap();
            drop(turn);
            self.run_behind_a_relay(&server.url(), protocol, edit, only)
        }
    }

    fn run_behind_a_relay(
        &self,
        server: &str,
        protocol: Protocol,
        edit: Option<Edit>,
        only: Option<&str>,
    ) -> Trial {
        let address = address_in(server);
        let relay = Relay::start(address, protocol, edit).unwrap();
        let url = server.replace(&address.to_string(), &relay.address().to_string());
        let killer = run(self.command(only).env("IDEM_SERVER", url));
        Trial {
            killer,
            once: None,
            rewritten: relay.rewritten(),
        }
    }

    /// What `wire/sqlite.c` has put between sqlx and SQLite makes the change.
    fn run_with_sqlite(&self, edit: Option<Edit>, only: Option<&str>) -> Trial {
        let folder = tempfile::tempdir().unwrap();
        let sent = folder.path().join("sent");
        let mut command = self.command(only);
        // Its histories are long then.
        command.env_remove("IDEM_LONG");
        if let Some(Edit { from, to }) = edit {
            command
                .env("IDEM_SQLITE_FROM", from)
                .env("IDEM_SQLITE_TO", to)
                .env("IDEM_SQLITE_SENT", &sent);
        }
        let killer = run(&mut command);
        Trial {
            killer,
            once: None,
            rewritten: fs::metadata(sent).map_or(0, |sent| sent.len()),
        }
    }

    fn command(&self, only: Option<&str>) -> Command {
        let mut command = Command::new(self.path().expect("the suite was not built"));
        match only {
            Some(test) => command.args(["--exact", test]),
            None => command
                .args([self.tests, "--test-threads=4"])
                .args(self.but.iter().flat_map(|but| ["--skip", but])),
        };
        command
    }

    /// The newest of its name, beside this program.
    fn path(&self) -> Option<PathBuf> {
        let me = std::env::current_exe().ok()?;
        let entries = fs::read_dir(me.parent()?).ok()?;
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let hash = name
                .strip_prefix(self.program)
                .and_then(|rest| rest.strip_prefix('-'));
            hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths
            .filter(is_it)
            .max_by_key(|path| path.metadata().and_then(|file| file.modified()).ok())
    }
}

fn address_in(url: &str) -> SocketAddr {
    let (_, rest) = url.split_once('@').unwrap();
    let (address, _) = rest.split_once('/').unwrap();
    address.parse().unwrap()
}

fn run(command: &mut Command) -> Option<Killer> {
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut suite = command.spawn().unwrap();
    let killer = killer(&mut suite);
    suite.kill().unwrap();
    suite.wait().unwrap();
    killer
}

/// The first test that falls, or none when all have ended.
fn killer(suite: &mut Child) -> Option<Killer> {
    let said = BufReader::new(suite.stdout.take().unwrap());
    let (send, lines) = mpsc::channel();
    // Ends with the program.
    thread::spawn(move || {
        said.lines()
            .map_while(Result::ok)
            .try_for_each(|line| send.send(line))
    });
    let begin = Instant::now();
    let mut passed = 0;
    loop {
        match lines.recv_timeout(ENDLESS.saturating_sub(begin.elapsed())) {
            Ok(line) => {
                let test = line
                    .strip_prefix("test ")
                    .and_then(|rest| rest.split_once(" ... "));
                match test {
                    Some((name, "FAILED")) => {
                        let name = name.trim_end_matches(" - should panic");
                        return Some(Killer::Test(name.to_owned()));
                    }
                    Some((_, "ok")) => passed += 1,
                    _ => {}
                }
            }
            Err(RecvTimeoutError::Timeout) => return Some(Killer::Silence),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    assert!(passed > 0, "no test has run");
    None
}
