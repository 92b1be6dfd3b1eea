//! Push: one connection that hears of the ends of attempts.
//!
//! A step that ends an attempt which somebody waits for publishes to the key's channel. The hub
//! subscribes once per key, however many wait, and unsubscribes when the last one has gone. After
//! a lost connection it comes back and wakes everybody, since an end may have been missed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{PushInfo, PushKind, Value};
use tokio::sync::watch;

use super::endpoint::config;
use super::fault::{Fault, Harm};
use super::no_answer;
use super::pool::Pool;
use crate::error::{StoreError, StoreErrorKind};
use crate::store::Watch;

const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A counter for each channel, which every message and every reconnect raises.
type Channels = HashMap<String, watch::Sender<u64>>;

pub(super) struct Hub {
    pool: Arc<Pool>,
    channels: Mutex<Channels>,
    /// Held while something is said on the wire.
    wire: tokio::sync::Mutex<Wire>,
}

/// The connection, and which one it is: news of an earlier one are no news.
#[derive(Default)]
struct Wire {
    connection: Option<MultiplexedConnection>,
    number: u64,
}

impl Hub {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            channels: Mutex::default(),
            wire: tokio::sync::Mutex::default(),
        }
    }

    /// Subscribes to the ends of attempts on `key`. A user without the right to listen is not
    /// told, and has to poll.
    ///
    /// What is said on the wire is said by a task of its own: a caller who leaves in the middle
    /// does not leave the others with half a conversation.
    pub(super) async fn watch(self: &Arc<Self>, key: &str) -> Result<Watch, StoreError> {
        let channel = format!("idem:wake:{key}");
        let subscribing = tokio::spawn(Arc::clone(self).subscribe(channel));
        match subscribing.await {
            Ok(Ok(receiver)) => Ok(Watch::new(receiver)),
            Ok(Err(fault)) if fault.is_denied() => Ok(Watch::never()),
            Ok(Err(fault)) => Err(fault.error),
            Err(ended) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "redis: the runtime ended before the subscription was confirmed",
            )
            .with_source(ended)),
        }
    }

    async fn subscribe(self: Arc<Self>, channel: String) -> Result<watch::Receiver<u64>, Fault> {
        let mut wire = self.wire.lock().await;
        if wire.connection.is_some()
            && let Some(sender) = self.channels().get(&channel)
        {
            // Confirmed before the wire was free again.
            return Ok(sender.subscribe());
        }
        let limit = self.pool.limit();
        let saying = tokio::time::timeout(limit, self.say_subscribe(&mut wire, &channel));
        let said = match saying.await {
            Ok(said) => said,
            Err(_) => Err(Fault::of_connection(no_answer(limit))),
        };
        match said {
            Ok(()) => Ok(self.join(channel)),
            Err(fault) => {
                if !fault.is_denied() {
                    self.lose(&mut wire);
                }
                Err(fault)
            }
        }
    }

    async fn say_subscribe(self: &Arc<Self>, wire: &mut Wire, channel: &str) -> Result<(), Fault> {
        if let Some(connection) = &mut wire.connection {
            match connection.subscribe(channel).await.map_err(Fault::from) {
                Err(fault) if fault.harm != Harm::None => self.lose(wire),
                other => return other,
            }
        }
        let connection = self.open(wire).await?;
        Ok(connection.subscribe(channel).await?)
    }

    /// Opens the connection, with everything that is waited for on it.
    async fn open<'a>(
        self: &Arc<Self>,
        wire: &'a mut Wire,
    ) -> Result<&'a mut MultiplexedConnection, Fault> {
        let number = wire.number + 1;
        let hub = Arc::downgrade(self);
        let config = config().set_push_sender(move |push: PushInfo| {
            if let Some(hub) = hub.upgrade() {
                hub.hear(number, &push);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        let opened = self
            .pool
            .target()
            .open_for_pushes(&config, self.pool.limit())
            .await;
        let mut connection = opened.map_err(Fault::of_connection)?;
        let channels: Vec<String> = self.channels().keys().cloned().collect();
        if !channels.is_empty() {
            connection.subscribe(channels).await?;
        }
        // An end may have been missed while there was no connection.
        self.channels().values().for_each(raise);
        wire.number = number;
        Ok(wire.connection.insert(connection))
    }

    /// Lets a connection go that is of no more use. Its end says nothing to those who wait on it.
    fn lose(self: &Arc<Self>, wire: &mut Wire) {
        if wire.connection.take().is_some() && !self.channels().is_empty() {
            tokio::spawn(come_back(Arc::downgrade(self), wire.number));
        }
    }

    fn hear(self: &Arc<Self>, number: u64, push: &PushInfo) {
        match push.kind {
            PushKind::Message => {
                if let Some(Value::BulkString(channel)) = push.data.first()
                    && let Ok(channel) = std::str::from_utf8(channel)
                    && let Some(sender) = self.channels().get(channel)
                {
                    raise(sender);
                }
            }
            PushKind::Disconnection => {
                let hub = Arc::downgrade(self);
                tokio::spawn(come_back(hub, number));
            }
            _ => {}
        }
    }

    /// The counter of a channel that the server has confirmed.
    fn join(self: &Arc<Self>, channel: String) -> watch::Receiver<u64> {
        let mut channels = self.channels();
        if let Some(sender) = channels.get(&channel) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(0);
        channels.insert(channel.clone(), sender.clone());
        drop(channels);
        tokio::spawn(leave(Arc::downgrade(self), channel, sender));
        receiver
    }

    fn channels(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn raise(sender: &watch::Sender<u64>) {
    sender.send_modify(|count| *count = count.wrapping_add(1));
}

/// Unsubscribes when nobody waits for the channel any more.
async fn leave(hub: Weak<Hub>, channel: String, sender: watch::Sender<u64>) {
    loop {
        sender.closed().await;
        let Some(hub) = hub.upgrade() else { return };
        let mut wire = hub.wire.lock().await;
        {
            let mut channels = hub.channels();
            if sender.receiver_count() > 0 {
                // Somebody came while the wire was not free.
                continue;
            }
            channels.remove(&channel);
        }
        if let Some(connection) = &mut wire.connection {
            let said = connection.unsubscribe(&channel);
            let said = tokio::time::timeout(hub.pool.limit(), said).await;
            if !matches!(said, Ok(Ok(()))) {
                hub.lose(&mut wire);
            }
        }
        return;
    }
}

/// Connects again, as long as somebody waits.
async fn come_back(hub: Weak<Hub>, lost: u64) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        {
            let Some(hub) = hub.upgrade() else { return };
            let mut wire = hub.wire.lock().await;
            if wire.number != lost {
                return;
            }
            wire.connection = None;
            if hub.channels().is_empty() {
                return;
            }
            let limit = hub.pool.limit();
            let opened = tokio::time::timeout(limit, hub.open(&mut wire)).await;
            if matches!(opened, Ok(Ok(_))) {
                return;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
