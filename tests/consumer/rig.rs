//! One broker for the suite, a queue for each test, and a consumer on it.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use idem_core::consumer::{Action, Consumer, Meaning, MessageId, REASON_HEADER, Reason, Rules};
use idem_core::store::memory::SystemClock;
use idem_core::{Error, Idempotency, Key, MemoryStore, Policy};
use idem_examples::rabbit::{Link, Message, Rabbit};
use idem_tests::faulty::Faulty;
use idem_tests::rabbit::RabbitServer;
use lapin::message::BasicGetMessage;
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicPublishOptions, QueueDeleteOptions};
use lapin::types::AMQPValue;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

static BROKER: LazyLock<RabbitServer> = LazyLock::new(|| RabbitServer::start().unwrap());

/// Long enough for a machine that is busy.
const SOON: Duration = Duration::from_mins(1);

pub(crate) const RULES: Rules = Rules::new()
    .retries(3)
    .backoff(Duration::from_millis(50), Duration::from_millis(200))
    .pause(Duration::from_millis(100));

/// What a handler can say.
#[derive(Debug)]
pub(crate) enum Failure {
    Unreadable,
    Hopeless,
    Passing,
    Idempotency(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

pub(crate) fn meaning(failure: &Failure) -> Meaning<'_> {
    match failure {
        Failure::Unreadable => Meaning::Unreadable,
        Failure::Hopeless => Meaning::Dead,
        Failure::Passing => Meaning::Retry,
        Failure::Idempotency(refusal) => Meaning::Refusal(refusal),
    }
}

/// Where the broker of all tests is.
pub(crate) fn broker_url() -> String {
    BROKER.url()
}

/// A queue of its own.
pub(crate) fn queue() -> Rabbit {
    on(&BROKER)
}

/// A queue of its own on `broker`.
pub(crate) fn on(broker: &RabbitServer) -> Rabbit {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Rabbit::new(broker.url(), format!("test-{number}"))
        .delays([50, 250].map(Duration::from_millis))
        .unwrap()
}

pub(crate) fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

/// An engine whose store can fail.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) idem: Idempotency,
    pub(crate) store: Faulty<MemoryStore<SystemClock>>,
}

impl Engine {
    pub(crate) fn new() -> Self {
        let store = Faulty::new(MemoryStore::new());
        let idem = Idempotency::builder(store.clone()).build().unwrap();
        Self { idem, store }
    }

    /// The guarded function of these tests.
    pub(crate) async fn run<F>(
        &self,
        id: &MessageId,
        body: impl FnOnce() -> F,
    ) -> Result<(), Failure>
    where
        F: Future<Output = Result<(), Failure>>,
    {
        let key = Key::new("test:message", id)?;
        self.idem.run(key, Policy::new(), body).await
    }
}

/// A consumer that listens until it is stopped.
pub(crate) struct Listening {
    pub(crate) consumer: Arc<Consumer<Failure>>,
    stop: oneshot::Sender<()>,
    heard: oneshot::Receiver<()>,
    task: JoinHandle<()>,
}

impl Listening {
    pub(crate) fn start<T, H, F>(rabbit: &Rabbit, handler: H) -> Self
    where
        T: Send + 'static,
        H: Fn(Message) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let consumer = Arc::new(Consumer::new(meaning).rules(RULES));
        let (stop, stopped) = oneshot::channel();
        let (hear, heard) = oneshot::channel();
        let (rabbit, shared) = (rabbit.clone(), consumer.clone());
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
                let _ = hear.send(());
            };
            rabbit.listen(shared, handler, stopped).await;
        });
        Self {
            consumer,
            stop,
            heard,
            task,
        }
    }

    pub(crate) async fn stop(self) {
        self.tell_to_stop().await.await.unwrap();
    }

    /// Waits until it has heard of it; what is given ends when it has stopped.
    pub(crate) async fn tell_to_stop(self) -> JoinHandle<()> {
        let _ = self.stop.send(());
        let _ = self.heard.await;
        self.task
    }
}

/// What a test does on a queue beside its consumer.
pub(crate) struct Aside {
    pub(crate) link: Link,
    channel: Channel,
    rabbit: Rabbit,
    // Open as long as this.
    _connection: Connection,
}

impl Aside {
    pub(crate) async fn of(rabbit: &Rabbit, url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default()).await;
        let connection = connection.unwrap();
        Self {
            link: rabbit.connect().await.unwrap(),
            channel: connection.create_channel().await.unwrap(),
            rabbit: rabbit.clone(),
            _connection: connection,
        }
    }

    pub(crate) async fn on_the_broker_of_all(rabbit: &Rabbit) -> Self {
        Self::of(rabbit, &BROKER.url()).await
    }

    /// Publishes as a stranger might.
    pub(crate) async fn publish(&self, payload: &[u8], properties: BasicProperties) {
        let queue = self.rabbit.queues().main();
        self.publish_to(queue, payload, properties).await;
    }

    /// Publishes to any queue.
    pub(crate) async fn publish_to(
        &self,
        queue: &str,
        payload: &[u8],
        properties: BasicProperties,
    ) {
        let options = BasicPublishOptions::default();
        let published =
            self.channel
                .basic_publish("".into(), queue.into(), options, payload, properties);
        published.await.unwrap().await.unwrap();
    }

    /// Takes a queue away.
    pub(crate) async fn delete(&self, queue: &str) {
        let options = QueueDeleteOptions::default();
        self.channel
            .queue_delete(queue.into(), options)
            .await
            .unwrap();
    }

    /// Waits until `number` dead letters are there, and takes them.
    pub(crate) async fn dead(&self, number: usize) -> Vec<BasicGetMessage> {
        let queue = self.rabbit.queues().dead();
        let mut taken = Vec::new();
        soon("the dead letters", async || {
            let options = BasicGetOptions::default();
            let got = self.channel.basic_get(queue.as_str().into(), options).await;
            if let Some(message) = got.unwrap() {
                message.ack(BasicAckOptions::default()).await.unwrap();
                taken.push(message);
            }
            taken.len() == number
        })
        .await;
        taken
    }

    /// Waits until `number` messages are parked.
    pub(crate) async fn until_parked(&self, number: u32) {
        let parked = self.rabbit.queues().parked();
        let all = async || self.link.count(&parked).await.unwrap() == number;
        soon("the parked messages", all).await;
    }

    /// After the consumer has stopped: nothing is left anywhere.
    pub(crate) async fn nothing_is_left(&self) {
        let queues = self.rabbit.queues();
        let delays = [50, 250].map(|millis| queues.delay(Duration::from_millis(millis)));
        let others = [queues.main().to_owned(), queues.parked(), queues.dead()];
        for queue in delays.into_iter().chain(others) {
            assert_eq!(self.link.count(&queue).await.unwrap(), 0, "{queue}");
        }
    }
}

pub(crate) fn reason(message: &BasicGetMessage) -> String {
    match header(message, REASON_HEADER) {
        Some(AMQPValue::LongString(reason)) => reason.to_string(),
        other => panic!("no reason: {other:?}"),
    }
}

pub(crate) fn header(message: &BasicGetMessage, name: &str) -> Option<AMQPValue> {
    let headers = message.properties.headers().as_ref()?;
    headers.inner().get(name).cloned()
}

/// Waits until `holds`, and lets the tasks of this runtime go on meanwhile.
pub(crate) async fn soon(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < SOON, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What fails is delivered again, counted, and at last dead.
pub(crate) async fn is_retried_and_dead(
    retries: u32,
    reason: Reason,
    deliver: impl AsyncFn(u32) -> Action,
) {
    for before in 0..retries {
        let action = deliver(before).await;
        assert!(
            matches!(action, Action::Delay { retries, .. } if retries == before + 1),
            "{action:?}"
        );
    }
    assert_eq!(deliver(retries).await, Action::Dead { reason });
}
