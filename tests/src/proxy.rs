//! A wire that can be cut, stopped, slowed, and made to lose one reply: [`Proxy`] stands between a
//! client and a Redis server (or any other TCP server, which it then only does not understand).
//!
//! It runs on a thread with a runtime of its own, so it goes on while the test's runtime is
//! blocked or has ended.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

mod conversation;
mod frames;
mod lane;
mod link;
mod switch;

use switch::Switch;

/// What happens to bytes and connections. A change counts for every write after it, on open
/// connections too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything passes.
    Pass,
    /// Open connections are closed, new ones are closed at once.
    Cut,
    /// Connections stay and are accepted; what is sent either way is lost, an end of the server
    /// too. A connection that lost something is closed when the mode changes.
    BlackHole,
    /// The same, and the server does not hear that a client has gone, as after a power cut.
    Dark,
    /// Nothing passes, nothing is lost: all of it is delivered when the mode changes, as after a
    /// partition that TCP survives.
    Hold,
    /// Each piece arrives later by these times.
    Delay {
        /// From client to server.
        requests: Duration,
        /// From server to client.
        replies: Duration,
    },
}

impl Mode {
    /// Whether what is sent is lost.
    fn is_hole(self) -> bool {
        matches!(self, Self::BlackHole | Self::Dark)
    }
}

/// What becomes of a connection whose reply was swallowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is closed.
    Cut,
    /// It stays open, and nothing passes on it any more.
    Hang,
}

/// A proxy on a free port of 127.0.0.1. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    switch: Arc<Switch>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy in mode [`Mode::Pass`] before `upstream`, which need not be up yet: a connection
    /// to a server that is down is accepted and closed.
    pub fn start(upstream: SocketAddr) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let switch = Arc::new(Switch::new());
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&switch);
        let serve = move || serve(&runtime, listener, upstream, shared, stopped);
        let thread = thread::Builder::new()
            .name("fault-proxy".into())
            .spawn(serve)?;
        Ok(Self {
            address,
            switch,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `redis://…` of the proxy.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Changes the mode.
    pub fn set(&self, mode: Mode) {
        self.switch.set(mode);
    }

    /// Delivers the next command, whatever it is, and swallows its reply. Replies to commands
    /// before it on the same connection still pass; those after it do not.
    pub fn drop_next_reply(&self, then: Then) {
        self.switch.arm(None, then);
    }

    /// The same for the next command called `name`, for instance `EVALSHA`: what a client says
    /// when it connects goes undisturbed. Not for connections that subscribed in RESP2.
    pub fn drop_reply_to(&self, name: &str, then: Then) {
        self.switch.arm(Some(name), then);
    }

    /// Whether the reply asked for by [`Proxy::drop_reply_to`] has not met its command yet.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.switch.is_armed()
    }

    /// Connections that clients have opened since the start, whatever became of them.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.switch.passed().connections
    }

    /// Bytes passed on from clients to the server since the start.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.switch.passed().bytes
    }

    /// Commands passed on from clients to the server since the start.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.switch.passed().by_name.values().sum()
    }

    /// The same for commands called `name`.
    #[must_use]
    pub fn commands_called(&self, name: &str) -> u64 {
        let passed = self.switch.passed();
        passed
            .by_name
            .get(&name.to_uppercase())
            .copied()
            .unwrap_or(0)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts until the handle is dropped; the connections end with the runtime.
fn serve(
    runtime: &Runtime,
    listener: TcpListener,
    upstream: SocketAddr,
    switch: Arc<Switch>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        tokio::select! {
            _ = stopped => {}
            () = accept(listener, upstream, switch) => {}
        }
    });
}

async fn accept(listener: TcpListener, upstream: SocketAddr, switch: Arc<Switch>) {
    while let Ok((client, _)) = listener.accept().await {
        switch.count_connection();
        let switch = Arc::clone(&switch);
        tokio::spawn(async move {
            // An error is the end of this connection, which its client sees.
            let _ = link::run(client, upstream, &switch).await;
        });
    }
}
