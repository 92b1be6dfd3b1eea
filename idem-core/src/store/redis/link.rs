//! A connection, to one node or to a cluster, that all calls of one runtime share.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::redis::aio::{ConnectionLike, MultiplexedConnection};
use ::redis::cluster_async::ClusterConnection;
use ::redis::cluster_routing::SingleNodeRoutingInfo;
use ::redis::{Cmd, RedisError, RedisResult, Value};
use tokio::task::JoinSet;

use super::nodes::{Masters, masters_of};
use super::script::Dialect;

/// How long to wait before each further send of a command that the cluster has refused because it
/// was moving the slot. It was not executed, so this is no resend.
const REFUSED_BY_CLUSTER: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(80),
    Duration::from_millis(320),
];

/// The wire.
#[derive(Clone)]
pub(super) enum Wire {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A wire, what was found at its other end, and whether it still answers.
pub(super) struct Link {
    wire: Wire,
    pub(super) dialect: Dialect,
    /// Those of a cluster when this was opened, if it could say.
    masters: Option<Masters>,
    born: Instant,
    /// Milliseconds since `born` at which a call was sent after which nothing was heard; 0 if the
    /// last thing that happened was an answer.
    silent_since: AtomicU64,
    /// Failures, and long waits of calls that were given up, to a cluster since it was last
    /// looked at: other nodes' answers say nothing about the one that is silent.
    given_up: AtomicU32,
    /// Microseconds that calls have waited which were given up, until they make a long wait.
    waited: AtomicU64,
    /// Milliseconds since `born` at which a cluster was last looked at.
    looked_at: AtomicU64,
    /// How long a call may take.
    patience: Duration,
}

impl Link {
    pub(super) fn new(wire: Wire, dialect: Dialect, patience: Duration) -> Self {
        Self {
            wire,
            dialect,
            masters: None,
            patience,
            born: Instant::now(),
            silent_since: AtomicU64::new(0),
            given_up: AtomicU32::new(0),
            waited: AtomicU64::new(0),
            looked_at: AtomicU64::new(0),
        }
    }

    /// The same, to a cluster with these masters.
    pub(super) fn with_masters(self, masters: Option<Masters>) -> Self {
        Self { masters, ..self }
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.wire, Wire::Cluster(_))
    }

    pub(super) fn wire(&self) -> Wire {
        self.wire.clone()
    }

    /// Sends a command. Errors of the server are errors here.
    ///
    /// Dropping the future leaves open whether the server does it; the silence after it counts.
    pub(super) async fn send(&self, cmd: &Cmd) -> RedisResult<Value> {
        let waiting = self.begin();
        let answer = match self.wire() {
            Wire::Node(mut node) => node.send_packed_command(cmd).await,
            // Boxed, so that a call to one node does not carry what a redirect would need.
            Wire::Cluster(cluster) => Box::pin(send_to_cluster(cluster, cmd)).await,
        };
        waiting.answered();
        answer?.extract_error()
    }

    /// Sends commands at once; the answers stand in their order.
    pub(super) async fn send_all(&self, cmds: Vec<Cmd>) -> Vec<RedisResult<Value>> {
        let waiting = self.begin();
        let answers = match self.wire() {
            Wire::Node(node) => send_all_to_node(node, cmds).await,
            Wire::Cluster(cluster) => send_all_to_cluster(&cluster, cmds, self.patience).await,
        };
        waiting.answered();
        answers
    }

    /// Whether nothing more is to be expected from it: it was asked, and nothing was heard since.
    /// Half of a call's limit is long enough, so that an engine's second send goes over a new
    /// connection. A call that was dropped counts too: its caller may have had less patience.
    ///
    /// To a cluster it is a doubt only, which [`is_of_use`](Self::is_of_use) settles.
    pub(super) fn is_silent(&self) -> bool {
        if self.is_cluster() {
            return self.given_up.load(Ordering::Relaxed) > 1;
        }
        let since = self.silent_since.load(Ordering::Relaxed);
        since != 0 && self.born.elapsed() >= Duration::from_millis(since) + self.patience / 2
    }

    /// Notes a failure of the wire to a cluster. It may be that of one node, which the client heals
    /// by itself; a second one raises a doubt. Shortly after a look it says nothing new.
    pub(super) fn note_failure(&self) {
        let looked_at = Duration::from_millis(self.looked_at.load(Ordering::Relaxed));
        if self.born.elapsed() >= looked_at + self.patience / 4 {
            self.given_up.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that a call was given up after so long. A part of a limit, after which an engine sends
    /// again, is a long wait; so are several short ones, of callers with less patience.
    fn note_wait(&self, waited: Duration) {
        let micros = |wait: Duration| u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        let waited = micros(waited);
        let before = self.waited.fetch_add(waited, Ordering::Relaxed);
        if before.saturating_add(waited) >= micros(self.patience / 4) {
            self.waited.store(0, Ordering::Relaxed);
            self.note_failure();
        }
    }

    /// Looks at what is silent. A cluster of which any node answers is of use to all keys but those
    /// of the silent ones; only other masters than it began with are a reason for a new connection,
    /// because nobody tells the client of a fail-over as long as it asks a node that is dead.
    pub(super) async fn is_of_use(&self) -> bool {
        let Wire::Cluster(cluster) = self.wire() else {
            return false;
        };
        let looking = tokio::time::timeout(self.patience / 4, masters_of(&cluster));
        let Ok(Ok(masters)) = looking.await else {
            return false;
        };
        self.looked_at.store(self.age(), Ordering::Relaxed);
        self.given_up.store(0, Ordering::Relaxed);
        self.masters.as_ref() == Some(&masters)
    }

    /// Milliseconds since `born`.
    fn age(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn begin(&self) -> Waiting<'_> {
        // Only the first call of a silence counts.
        _ = self.silent_since.compare_exchange(
            0,
            self.age().max(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        Waiting {
            link: self,
            since: Instant::now(),
            is_answered: false,
        }
    }
}

/// A call without an answer yet.
struct Waiting<'a> {
    link: &'a Link,
    since: Instant,
    is_answered: bool,
}

impl Waiting<'_> {
    fn answered(mut self) {
        self.is_answered = true;
        self.link.silent_since.store(0, Ordering::Relaxed);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.link.note_wait(self.since.elapsed());
        }
    }
}

async fn send_all_to_node(
    mut node: MultiplexedConnection,
    cmds: Vec<Cmd>,
) -> Vec<RedisResult<Value>> {
    let count = cmds.len();
    let mut pipeline = ::redis::Pipeline::with_capacity(count);
    for cmd in cmds {
        pipeline.add_command(cmd);
    }
    match node.send_packed_commands(&pipeline, 0, count).await {
        Ok(answers) => answers.into_iter().map(Value::extract_error).collect(),
        Err(error) => vec![Err(error); count],
    }
}

/// Each command on its own, so that a silent node fails its own keys only.
async fn send_all_to_cluster(
    cluster: &ClusterConnection,
    cmds: Vec<Cmd>,
    patience: Duration,
) -> Vec<RedisResult<Value>> {
    let limit = patience / 10 * 9;
    let unanswered = || Err(RedisError::from(io::Error::from(io::ErrorKind::TimedOut)));
    let mut answers: Vec<_> = cmds.iter().map(|_| unanswered()).collect();
    let mut sent = JoinSet::new();
    for (index, cmd) in cmds.into_iter().enumerate() {
        let cluster = cluster.clone();
        sent.spawn(async move {
            let answer = tokio::time::timeout(limit, send_to_cluster(cluster, &cmd)).await;
            (index, answer)
        });
    }
    while let Some(answer) = sent.join_next().await {
        if let Ok((index, Ok(answer))) = answer {
            answers[index] = answer.and_then(Value::extract_error);
        }
    }
    answers
}

/// Sends a command to the node of its key, and on to where the slot has moved.
async fn send_to_cluster(mut cluster: ClusterConnection, cmd: &Cmd) -> RedisResult<Value> {
    let mut answer = cluster.req_packed_command(cmd).await;
    for pause in REFUSED_BY_CLUSTER {
        let Err(error) = &answer else { break };
        answer = match error.code() {
            Some("ASK") => send_to_importing(&mut cluster, cmd, error).await,
            Some("MOVED" | "TRYAGAIN") => {
                tokio::time::sleep(pause).await;
                cluster.req_packed_command(cmd).await
            }
            _ => break,
        };
    }
    answer
}

/// Sends a command to the node that is importing the slot, which the error names.
async fn send_to_importing(
    cluster: &mut ClusterConnection,
    cmd: &Cmd,
    error: &RedisError,
) -> RedisResult<Value> {
    let named = error.redirect_node().and_then(|(address, _)| {
        let (host, port) = address.rsplit_once(':')?;
        Some((host.to_owned(), port.parse().ok()?))
    });
    let Some((host, port)) = named else {
        return Err(error.clone());
    };
    let mut pipeline = ::redis::Pipeline::with_capacity(2);
    pipeline.cmd("ASKING").add_command(cmd.clone());
    let there = SingleNodeRoutingInfo::ByAddress { host, port };
    let answers = cluster.route_pipeline(pipeline, 0, 2, there).await?;
    answers
        .into_iter()
        .next_back()
        .unwrap_or(Value::Nil)
        .extract_error()
}
