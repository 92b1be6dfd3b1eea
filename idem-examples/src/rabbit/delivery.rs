//! One delivery, from the broker's hand to its acknowledgement.

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use idem_core::consumer::{Action, Consumer, MessageId};
use lapin::message::Delivery;
use lapin::options::BasicAckOptions;
use lapin::types::FieldTable;
use tokio::sync::watch;

use super::copies::{copied, retries};
use super::link::Link;

/// A message, as its handler gets it.
#[derive(Debug, Clone)]
pub struct Message {
    /// What its publisher called it: the property `message_id`. Prefer an id inside the payload if
    /// the event has one of its own there.
    pub id: MessageId,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Its headers.
    pub headers: FieldTable,
}

/// What all deliveries share.
pub(super) struct Work<E, H> {
    consumer: Arc<Consumer<E>>,
    handler: H,
    stopped: watch::Receiver<bool>,
}

impl<E, H> Work<E, H> {
    pub(super) fn new(
        consumer: Arc<Consumer<E>>,
        handler: H,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self {
            consumer,
            handler,
            stopped,
        }
    }
}

impl<T, E, H, F> Work<E, H>
where
    H: Fn(Message) -> F,
    F: Future<Output = Result<T, E>>,
{
    pub(super) async fn deliver(self: Arc<Self>, link: Link, delivery: Delivery) {
        let Some(action) = self.handle(&delivery).await else {
            return;
        };
        if let Err(error) = settle(&link, &delivery, action).await {
            tracing::warn!(%error, "a message is not settled; the broker delivers it again");
            // As long as the channel lives, the broker counts on this delivery.
            let _ = link.close().await;
        }
    }

    /// What to do with it; None if it is to be left to the broker, which delivers it again.
    async fn handle(&self, delivery: &Delivery) -> Option<Action> {
        let properties = &delivery.properties;
        let id = properties
            .message_id()
            .as_ref()
            .map(lapin::types::ShortString::as_str);
        loop {
            let mut stopped = self.stopped.clone();
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return None,
                () = self.consumer.ready() => {}
            }
            if delivery.acker.poisoned() {
                return None;
            }
            let call = |id| {
                (self.handler)(Message {
                    id,
                    payload: delivery.data.clone(),
                    headers: properties.headers().clone().unwrap_or_default(),
                })
            };
            match self.consumer.handle(id, retries(properties), call).await {
                Action::Pause { .. } => {}
                action => return Some(action),
            }
        }
    }
}

/// The copy first: a crash between the two leaves a duplicate, the other order leaves nothing.
async fn settle(link: &Link, delivery: &Delivery, action: Action) -> Result<()> {
    let queues = link.queues();
    let queue = match action {
        Action::Ack => None,
        Action::Delay { by, .. } => Some(queues.delay(by)),
        Action::Park => Some(queues.parked()),
        Action::Dead { .. } => Some(queues.dead()),
        // Held by `handle`, not settled.
        Action::Pause { .. } => return Ok(()),
    };
    if let Some(queue) = queue {
        let properties = copied(&delivery.properties, action);
        link.put(&queue, &delivery.data, properties).await?;
    }
    delivery.ack(BasicAckOptions::default()).await?;
    Ok(())
}
