//! A connection that publishes and waits for the broker's word.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use idem_core::consumer::MessageId;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions,
    QueueDeclareOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use tokio::time::timeout;

use super::copies::{PERSISTENT, taken_up};
use super::queues::Queues;

/// How long the broker may take for its good-bye. Over a connection that has just been lost it never
/// comes, and the client would wait for it for ever.
const GOOD_BYE: Duration = Duration::from_secs(2);

/// How long the broker may take until everything is there. One that stands still takes a connection
/// and says nothing, and nobody would dial it again.
const DIAL: Duration = Duration::from_secs(10);

/// A connection whose queues are there. Clones share it.
#[derive(Clone)]
pub struct Link {
    connection: Arc<Connection>,
    channel: Channel,
    queues: Queues,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

impl Link {
    pub(super) async fn open(url: &str, queues: Queues) -> Result<Self> {
        let dialled = timeout(DIAL, Self::dial(url, queues)).await;
        dialled.context("the broker does not answer")?
    }

    async fn dial(url: &str, queues: Queues) -> Result<Self> {
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        queues.declare(&channel).await?;
        Ok(Self {
            connection: Arc::new(connection),
            channel,
            queues,
        })
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(super) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Publishes a message; when this returns, the broker has it on disk.
    ///
    /// # Errors
    /// The id is longer than the 255 bytes that AMQP has for it. Otherwise the broker did not
    /// confirm the message: it may have it or not, so publish it again with the same id.
    pub async fn publish(&self, id: &MessageId, payload: &[u8]) -> Result<()> {
        let properties = BasicProperties::default()
            .with_message_id(ShortString::try_new(id.as_str())?)
            .with_delivery_mode(PERSISTENT);
        self.put(self.queues.main(), payload, properties).await
    }

    /// Lets the messages go on that are parked now, and says how many there were: for after a
    /// `resolve`. Those that nobody has resolved are parked again.
    ///
    /// # Errors
    /// The connection was lost, or the broker does not take a message; none was lost.
    pub async fn unpark(&self) -> Result<u32> {
        let parked = self.queues.parked();
        // Only those: they may come back while this runs.
        let count = self.count(&parked).await?;
        for gone_on in 0..count {
            let options = BasicGetOptions::default();
            let got = self
                .channel
                .basic_get(parked.as_str().into(), options)
                .await?;
            let Some(message) = got else {
                return Ok(gone_on);
            };
            let properties = taken_up(&message.properties);
            let put = self.put(self.queues.main(), &message.data, properties);
            if let Err(error) = put.await {
                // Otherwise it is held, and seen by nobody, for as long as this connection lives.
                message
                    .nack(BasicNackOptions {
                        requeue: true,
                        ..BasicNackOptions::default()
                    })
                    .await?;
                return Err(error);
            }
            message.ack(BasicAckOptions::default()).await?;
        }
        Ok(count)
    }

    /// How many messages of `queue` wait for somebody to take them.
    ///
    /// # Errors
    /// The connection was lost, or there is no such queue.
    pub async fn count(&self, queue: &str) -> Result<u32> {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = self
            .channel
            .queue_declare(queue.into(), options, FieldTable::default())
            .await?;
        Ok(queue.message_count())
    }

    /// Says good-bye.
    ///
    /// # Errors
    /// The connection was lost before, or the broker does not answer within two seconds.
    pub async fn close(&self) -> Result<()> {
        let closing = self.connection.close(200, "stopped".into());
        let closed = timeout(GOOD_BYE, closing).await;
        Ok(closed.context("the broker does not say good-bye")??)
    }

    /// Publishes to a queue, and waits until the broker has it.
    pub(super) async fn put(
        &self,
        queue: &str,
        payload: &[u8],
        properties: BasicProperties,
    ) -> Result<()> {
        let options = BasicPublishOptions {
            // Without it, the broker confirms what it throws away because the queue is gone.
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let confirm = self
            .channel
            .basic_publish("".into(), queue.into(), options, payload, properties)
            .await?;
        match confirm.await? {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(_)) => bail!("there is no queue {queue}"),
            Confirmation::Nack(_) | Confirmation::NotRequested => {
                bail!("the broker did not take a message for {queue}")
            }
        }
    }
}
