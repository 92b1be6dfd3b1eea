//! RabbitMQ around [`idem_core::consumer`]: what to copy into a service of yours.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use idem_core::{Error, consumer::{Consumer, Meaning, MessageId}, idempotent};
//! # use idem_examples::rabbit::{Message, Rabbit};
//! #[idempotent(prefix = "order:paid", key = "id", expire = "7d")]
//! async fn paid(id: MessageId, payload: Vec<u8>) -> Result<(), Error> {
//!     Ok(())
//! }
//!
//! # async fn start() {
//! let consumer = Arc::new(Consumer::new(|error: &Error| Meaning::Refusal(error)));
//! let handler = async |message: Message| paid(message.id, message.payload).await;
//! let stop = async { drop(tokio::signal::ctrl_c().await) };
//! let rabbit = Rabbit::new("amqp://127.0.0.1/%2f", "orders.paid");
//! rabbit.listen(consumer, move |message| handler(message), stop).await;
//! # }
//! ```
//!
//! One connection listens at a time; when it is lost, the bodies that run finish and the next one
//! is opened. The queues are made by whoever comes first: see [`Queues`].

mod copies;
mod delivery;
mod link;
mod queues;

pub use delivery::Message;
pub use link::Link;
pub use queues::Queues;

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_lite::StreamExt;
use idem_core::consumer::Consumer;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::delivery::Work;

/// How long to wait before a broker that is away is dialled again.
const REDIAL: Duration = Duration::from_secs(1);

const TAG: &str = "idem";

/// One queue of one broker, and those beside it.
#[derive(Clone)]
pub struct Rabbit {
    url: String,
    queues: Queues,
    prefetch: u16,
}

impl fmt::Debug for Rabbit {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rabbit")
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

impl Rabbit {
    /// The queue `queue` of the broker at `url`, `amqp://user:password@host:port/vhost`.
    #[must_use]
    pub fn new(url: impl Into<String>, queue: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            queues: Queues::new(queue),
            prefetch: 16,
        }
    }

    /// How many messages are worked on at once; 16 if not said.
    ///
    /// # Errors
    /// 0, by which a broker means all that it has.
    pub fn prefetch(mut self, prefetch: u16) -> Result<Self> {
        ensure!(
            prefetch > 0,
            "a prefetch of 0 is no limit; say how many messages are worked on at once"
        );
        self.prefetch = prefetch;
        Ok(self)
    }

    /// How long a message can be delayed, from short to long; see [`Queues::delays`].
    ///
    /// # Errors
    /// As for [`Queues::delays`].
    pub fn delays(mut self, delays: impl Into<Vec<Duration>>) -> Result<Self> {
        self.queues = self.queues.delays(delays)?;
        Ok(self)
    }

    /// The names of the queues.
    #[must_use]
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// A connection, to publish on or to let parked messages go on.
    ///
    /// # Errors
    /// The broker can not be reached, does not answer within ten seconds, refuses, or has a queue of that name made otherwise.
    pub async fn connect(&self) -> Result<Link> {
        Link::open(&self.url, self.queues.clone()).await
    }

    /// Hands every message to `handler`, and does with it what `consumer` says, until `stop` ends;
    /// then finishes what has begun. Dials again whenever the connection is lost.
    ///
    /// # Cancel safety
    /// Prefer `stop`: a body that is dropped has an unknown outcome, and its message is parked.
    pub async fn listen<T, E, H, F>(
        &self,
        consumer: Arc<Consumer<E>>,
        handler: H,
        stop: impl Future<Output = ()>,
    ) where
        T: Send + 'static,
        E: Send + 'static,
        H: Fn(Message) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (stopping, stopped) = watch::channel(false);
        let work = Arc::new(Work::new(consumer, handler, stopped));
        let mut lost = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let connected = tokio::select! {
                () = &mut stop => break,
                connected = self.connect() => connected,
            };
            let ended = match connected {
                Ok(link) => {
                    let mut running = JoinSet::new();
                    let ended =
                        serve(self, &link, &work, &mut running, stop.as_mut(), &stopping).await;
                    if ended.is_err() {
                        // Aside: a good-bye over a lost connection takes its time.
                        lost.spawn(see_through(running, link));
                    }
                    ended
                }
                Err(error) => Err(error),
            };
            match ended {
                Ok(()) => break,
                Err(error) => tracing::warn!(%error, "the broker is away; it is dialled again"),
            }
            while lost.try_join_next().is_some() {}
            tokio::select! {
                () = &mut stop => break,
                () = tokio::time::sleep(REDIAL) => {}
            }
        }
        stopping.send_replace(true);
        while lost.join_next().await.is_some() {}
    }
}

/// Leaves a connection that is lost, and finishes what has begun on it.
async fn see_through(mut running: JoinSet<()>, link: Link) {
    // The bodies that still run hold the connection, and as long as that lives the broker counts on
    // all of its deliveries.
    let _ = link.close().await;
    while running.join_next().await.is_some() {}
}

/// Works on one connection. Ok if it was stopped, an error if the connection ended.
async fn serve<T, E, H, F>(
    rabbit: &Rabbit,
    link: &Link,
    work: &Arc<Work<E, H>>,
    running: &mut JoinSet<()>,
    mut stop: Pin<&mut impl Future<Output = ()>>,
    stopping: &watch::Sender<bool>,
) -> Result<()>
where
    T: Send + 'static,
    E: Send + 'static,
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let channel = link.channel();
    channel
        .basic_qos(rabbit.prefetch, BasicQosOptions::default())
        .await?;
    let mut deliveries = channel
        .basic_consume(
            rabbit.queues.main().into(),
            TAG.into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        )
        .await?;
    loop {
        tokio::select! {
            () = &mut stop => break,
            // Its message comes again when this connection is closed.
            Some(ended) = running.join_next() => ended.context("a delivery was not seen through")?,
            delivery = deliveries.next() => {
                let delivery = delivery.context("the broker took the queue away")??;
                running.spawn(work.clone().deliver(link.clone(), delivery));
            }
        }
    }
    // Not an error any more: `stop` has ended, and can not be asked again.
    if let Err(error) = leave(link, running, stopping).await {
        tracing::warn!(%error, "the broker was away at the end; it delivers again what it has to");
    }
    Ok(())
}

/// Takes no more, finishes what has begun, and says good-bye.
async fn leave(
    link: &Link,
    running: &mut JoinSet<()>,
    stopping: &watch::Sender<bool>,
) -> Result<()> {
    let cancelled = link
        .channel()
        .basic_cancel(TAG.into(), BasicCancelOptions::default())
        .await;
    stopping.send_replace(true);
    while running.join_next().await.is_some() {}
    cancelled?;
    link.close().await
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_prefetch_without_a_limit_is_refused() {
        let rabbit = Rabbit::new("amqp://127.0.0.1/%2f", "q");
        assert!(rabbit.clone().prefetch(0).is_err());
        assert!(rabbit.prefetch(1).is_ok());
    }

    /// Something listens there, and is no broker, or one that stands still.
    #[tokio::test]
    async fn a_broker_that_takes_the_connection_and_says_nothing_is_given_up() -> Result<()> {
        let silent = TcpListener::bind("127.0.0.1:0").await?;
        let rabbit = Rabbit::new(format!("amqp://{}/%2f", silent.local_addr()?), "q");
        let connecting = tokio::spawn(async move { rabbit.connect().await });
        let _silence = silent.accept().await?;
        tokio::time::pause();
        let dialled = tokio::time::timeout(Duration::from_mins(10), connecting).await;
        let refused = dialled.context("it waits for ever")??.unwrap_err();
        assert!(refused.to_string().contains("does not answer"), "{refused}");
        Ok(())
    }
}
