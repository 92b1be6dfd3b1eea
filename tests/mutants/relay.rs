//! Stands between a store and its server, and rewrites the texts that are sent for execution:
//! what runs is a mutant, what was compiled is not touched.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::mutant::Edit;
use crate::wire::Protocol;

/// A relay on a free port of 127.0.0.1. Dropping it closes all its connections.
pub(crate) struct Relay {
    address: SocketAddr,
    rewritten: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What all connections of a relay share.
#[derive(Clone)]
struct Plan {
    server: SocketAddr,
    protocol: Protocol,
    /// Nothing is changed without one.
    edit: Option<Arc<Edit>>,
    rewritten: Arc<AtomicU64>,
}

impl Relay {
    pub(crate) fn start(
        server: SocketAddr,
        protocol: Protocol,
        edit: Option<Edit>,
    ) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let rewritten = Arc::new(AtomicU64::new(0));
        let plan = Plan {
            server,
            protocol,
            edit: edit.map(Arc::new),
            rewritten: Arc::clone(&rewritten),
        };
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("mutating-relay".into())
            .spawn(move || serve(&runtime, &listener, &plan, stopped))?;
        Ok(Self {
            address,
            rewritten,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many texts were changed: a mutant that never ran proves nothing.
    pub(crate) fn rewritten(&self) -> u64 {
        self.rewritten.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(runtime: &Runtime, listener: &TcpListener, plan: &Plan, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async {
        tokio::select! {
            _ = stopped => {}
            () = accept(listener, plan) => {}
        }
    });
}

async fn accept(listener: &TcpListener, plan: &Plan) {
    while let Ok((client, _)) = listener.accept().await {
        // An error is the end of this connection, which its client sees.
        tokio::spawn(join(client, plan.clone()));
    }
}

async fn join(client: TcpStream, plan: Plan) -> Result<()> {
    let server = TcpStream::connect(plan.server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    tokio::select! {
        end = rewrite(from_client, to_server, plan) => end,
        end = copy(&mut from_server, &mut to_client) => Ok(end.map(drop)?),
    }
}

/// Passes on whole messages.
async fn rewrite(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, plan: Plan) -> Result<()> {
    let mut conversation = plan.protocol.begin();
    let mut waiting = Vec::new();
    while from.read_buf(&mut waiting).await? > 0 {
        let mut ready = Vec::with_capacity(waiting.len());
        while let Some(length) = conversation.whole(&waiting) {
            let message: Vec<u8> = waiting.drain(..length).collect();
            let edit = plan.edit.as_deref();
            match edit.and_then(|edit| conversation.edited(&message, edit)) {
                Some(changed) => {
                    plan.rewritten.fetch_add(1, Ordering::Relaxed);
                    ready.extend(changed);
                }
                None => ready.extend(message),
            }
        }
        to.write_all(&ready).await?;
    }
    Ok(())
}
