//! Stands between a store and its server, and rewrites the texts that are sent for execution:
//! what runs is a mutant, what was compiled is not touched.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::mutant::Edit;
use crate::wire::{Conversation, Protocol};

/// A relay on a free port of 127.0.0.1. Dropping it closes all its connections.
pub(crate) struct Relay {
    address: SocketAddr,
    rewritten: Arc<AtomicU64>,
    scene: Arc<Mutex<Scene>>,
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
    scene: Arc<Mutex<Scene>>,
}

/// What a scene asks for, with the mutant and without.
#[derive(Default)]
struct Scene {
    besides: Option<Arc<Edit>>,
    gate: Option<Gate>,
}

struct Gate {
    text: &'static str,
    reached: oneshot::Sender<()>,
    open: oneshot::Receiver<()>,
}

/// A message that waits, or will, until this is opened or dropped.
pub(crate) struct Held {
    reached: oneshot::Receiver<()>,
    open: oneshot::Sender<()>,
}

impl Held {
    pub(crate) async fn reached(&mut self) {
        (&mut self.reached).await.unwrap();
    }

    pub(crate) fn open(self) {
        self.open.send(()).unwrap();
    }
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
        let scene = Arc::default();
        let plan = Plan {
            server,
            protocol,
            edit: edit.map(Arc::new),
            rewritten: Arc::clone(&rewritten),
            scene: Arc::clone(&scene),
        };
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("mutating-relay".into())
            .spawn(move || serve(&runtime, &listener, &plan, stopped))?;
        Ok(Self {
            address,
            rewritten,
            scene,
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

    /// Changes this besides, behind the mutant and uncounted, until it is told otherwise.
    pub(crate) fn change_besides(&self, edit: Option<Edit>) {
        locked(&self.scene).besides = edit.map(Arc::new);
    }

    /// Holds back the next message in which this text stands.
    pub(crate) fn hold(&self, text: &'static str) -> Held {
        let (send_reached, reached) = oneshot::channel();
        let (open, opened) = oneshot::channel();
        locked(&self.scene).gate = Some(Gate {
            text,
            reached: send_reached,
            open: opened,
        });
        Held { reached, open }
    }
}

fn locked(scene: &Mutex<Scene>) -> MutexGuard<'_, Scene> {
    scene.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plan {
    fn gate_before(&self, message: &[u8]) -> Option<Gate> {
        let stands_in = |gate: &mut Gate| {
            let text = gate.text.as_bytes();
            message.windows(text.len()).any(|part| part == text)
        };
        locked(&self.scene).gate.take_if(stands_in)
    }

    /// What the server is sent instead.
    fn edited(&self, conversation: &Conversation, mut message: Vec<u8>) -> Vec<u8> {
        let edited = |edit: &Arc<Edit>, message: &[u8]| conversation.edited(message, edit);
        if let Some(changed) = self.edit.as_ref().and_then(|edit| edited(edit, &message)) {
            self.rewritten.fetch_add(1, Ordering::Relaxed);
            message = changed;
        }
        let besides = locked(&self.scene).besides.clone();
        let changed = besides.and_then(|edit| edited(&edit, &message));
        changed.unwrap_or(message)
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
            if let Some(gate) = plan.gate_before(&message) {
                to.write_all(&std::mem::take(&mut ready)).await?;
                // The scene may have ended.
                let _ = gate.reached.send(());
                let _ = gate.open.await;
            }
            ready.extend(plan.edited(&conversation, message));
        }
        to.write_all(&ready).await?;
    }
    Ok(())
}
