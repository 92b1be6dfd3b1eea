//! What a server is started with, as lines of its configuration file.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::program;

pub(super) const REPLICATOR: &str = "replicator";

/// When the append-only file reaches the disk (`appendfsync`).
#[derive(Clone, Copy, Debug)]
pub enum Fsync {
    /// Before each answer.
    Always,
    /// Once a second.
    EverySecond,
    /// When the kernel likes.
    Never,
}

/// How to start a [`RedisServer`](super::RedisServer). The default: memory only, no limits, no
/// password.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    program: Option<PathBuf>,
    password: Option<String>,
    lines: Vec<String>,
}

impl RedisOptions {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another server program than `REDIS_SERVER` or the one in PATH.
    #[must_use]
    pub fn binary(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    pub(crate) fn or_binary(mut self, program: PathBuf) -> Self {
        self.program.get_or_insert(program);
        self
    }

    /// Writes an append-only file.
    #[must_use]
    pub fn aof(self, fsync: Fsync) -> Self {
        let when = match fsync {
            Fsync::Always => "always",
            Fsync::EverySecond => "everysec",
            Fsync::Never => "no",
        };
        self.line("appendonly yes")
            .line(format!("appendfsync {when}"))
    }

    /// A limit such as `3mb`, and what happens at it, such as `noeviction`.
    #[must_use]
    pub fn max_memory(self, limit: &str, policy: &str) -> Self {
        self.line(format!("maxmemory {limit}"))
            .line(format!("maxmemory-policy {policy}"))
    }

    /// The password of the default user.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.line(format!("requirepass {password}"))
    }

    /// One more user with its ACL rules, such as `~idem:* &* -@all +evalsha`.
    #[must_use]
    pub fn user(self, name: &str, password: &str, rules: &str) -> Self {
        self.line(format!("user {name} on >{password} {rules}"))
    }

    /// Gives replicas a login of their own, so that
    /// [`cut_replicas`](super::RedisServer::cut_replicas) can refuse them. For master and replica.
    #[must_use]
    pub fn replicated(self) -> Self {
        self.user(REPLICATOR, REPLICATOR, "+psync +replconf +ping")
            .line(format!("masteruser {REPLICATOR}"))
            .line(format!("masterauth {REPLICATOR}"))
            .line("repl-diskless-sync-delay 0")
    }

    /// Any other line of `redis.conf`.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    pub(crate) fn secret(&self) -> Option<&str> {
        self.password.as_deref()
    }

    pub(super) fn program(&self) -> Result<PathBuf> {
        self.program.clone().map_or_else(program::redis_server, Ok)
    }

    /// Of two lines about one thing the last wins: the user's.
    pub(super) fn config(&self, port: u16, data: &Path, log: &Path) -> String {
        let base = format!(
            "bind 127.0.0.1\nport {port}\ndir {}\nlogfile {}\nsave \"\"\nappendonly no\n",
            data.display(),
            log.display()
        );
        base + &self.lines.join("\n") + "\n"
    }
}
