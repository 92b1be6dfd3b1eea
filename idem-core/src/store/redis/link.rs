//! A connection, to one node or to a cluster, and what was found at its other end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::redis::aio::MultiplexedConnection;
use ::redis::cluster_async::ClusterConnection;
use ::redis::{Cmd, RedisResult, Value};

use super::script::Dialect;

/// The wire.
#[derive(Clone)]
pub(super) enum Wire {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A connection that all calls of one runtime share.
pub(super) struct Link {
    wire: Wire,
    pub(super) dialect: Dialect,
    born: Instant,
    /// Milliseconds since `born` at which a call was sent after which nothing was heard; 0 if the
    /// last thing that happened was an answer.
    silent_since: AtomicU64,
}

impl Link {
    pub(super) fn new(wire: Wire, dialect: Dialect) -> Self {
        Self {
            wire,
            dialect,
            born: Instant::now(),
            silent_since: AtomicU64::new(0),
        }
    }

    /// Sends a command. Errors of the server are errors here.
    ///
    /// Dropping the future leaves open whether the server does it; the silence after it counts.
    pub(super) async fn send(&self, cmd: &Cmd) -> RedisResult<Value> {
        self.note_sent();
        let answer = match self.wire.clone() {
            Wire::Node(mut node) => node.send_packed_command(cmd).await,
            Wire::Cluster(mut cluster) => {
                ::redis::aio::ConnectionLike::req_packed_command(&mut cluster, cmd).await
            }
        };
        self.note_heard();
        answer?.extract_error()
    }

    /// Whether it has been silent for so long, though it was asked, that nothing more is to be
    /// expected. A call that was dropped counts too: its caller may have had less patience.
    pub(super) fn is_silent(&self, patience: Duration) -> bool {
        let since = self.silent_since.load(Ordering::Relaxed);
        since != 0 && self.born.elapsed() >= Duration::from_millis(since) + patience
    }

    fn note_sent(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Only the first call of a silence counts.
        _ = self
            .silent_since
            .compare_exchange(0, now.max(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    fn note_heard(&self) {
        self.silent_since.store(0, Ordering::Relaxed);
    }
}
