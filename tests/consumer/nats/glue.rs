//! NATS JetStream around the adapter.
//!
//! A negative acknowledgement brings the same message back after a delay, so a delay that does not
//! count needs no copy. One that counts does: JetStream numbers deliveries by itself, and would
//! count the waiting too. Its copy asks to be delayed when it comes first.
//!
//! The id travels in a header of its own. `Nats-Msg-Id` would not do: within its window the stream
//! takes a copy with the same one for a duplicate, confirms it, and drops it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config as PullConfig;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer};
use async_nats::jetstream::stream::Config as StreamConfig;
use async_nats::jetstream::{AckKind, Context, Message, new};
use async_nats::{HeaderMap, HeaderValue};
use futures_lite::StreamExt;
use idem_core::consumer::{Action, Consumer, MessageId, REASON_HEADER, RETRIES_HEADER};
use tokio::task::JoinSet;

use crate::rig::Failure;

pub(super) const ID_HEADER: &str = "event-id";
/// How long a copy wants to wait, in milliseconds.
const DELAY_HEADER: &str = "event-delay";
/// How long the server waits for a word about a delivery.
pub(super) const ACK_WAIT: Duration = Duration::from_secs(1);

/// A subject, with those beside it for the parked and the dead.
#[derive(Clone)]
pub(super) struct Subject {
    context: Context,
    name: &'static str,
    deliveries: PullConsumer,
}

impl Subject {
    pub(super) async fn create(url: &str, name: &'static str) -> Self {
        let context = new(async_nats::connect(url).await.unwrap());
        let stream = StreamConfig {
            name: name.to_owned(),
            subjects: vec![format!("{name}.>")],
            ..StreamConfig::default()
        };
        let stream = context.create_stream(stream).await.unwrap();
        let consumer = PullConfig {
            durable_name: Some("service".to_owned()),
            filter_subject: format!("{name}.main"),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_deliver: -1,
            ..PullConfig::default()
        };
        let deliveries = stream.create_consumer(consumer).await.unwrap();
        Self {
            context,
            name,
            deliveries,
        }
    }

    pub(super) async fn publish(&self, id: Option<&str>, payload: &[u8]) {
        let mut headers = HeaderMap::new();
        if let Some(id) = id {
            headers.insert(ID_HEADER, id);
        }
        self.put("main", headers, payload.to_vec()).await;
    }

    /// Publishes, and waits until the stream has it.
    async fn put(&self, place: &str, headers: HeaderMap, payload: Vec<u8>) {
        let subject = format!("{}.{place}", self.name);
        let sent = self
            .context
            .publish_with_headers(subject, headers, payload.into())
            .await;
        let confirmed = sent.unwrap().await.unwrap();
        assert!(!confirmed.duplicate, "the stream dropped a copy");
    }

    /// Waits for `number` dead letters.
    pub(super) async fn dead(&self, number: usize) -> Vec<Message> {
        let stream = self.context.get_stream(self.name).await.unwrap();
        let config = PullConfig {
            filter_subject: format!("{}.dead", self.name),
            ..PullConfig::default()
        };
        let dead = stream.create_consumer(config).await.unwrap();
        let letters = dead.messages().await.unwrap();
        letters.take(number).map(Result::unwrap).collect().await
    }

    /// Whether every message has been acknowledged.
    pub(super) async fn is_empty(&self) -> bool {
        let info = self.deliveries.clone().info().await.unwrap().clone();
        info.num_pending == 0 && info.num_ack_pending == 0
    }
}

/// Hands every message to `handler` until it is dropped, and all that run with it.
pub(super) async fn listen<H, F>(subject: Subject, consumer: Arc<Consumer<Failure>>, handler: H)
where
    H: Fn(MessageId, Vec<u8>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let mut deliveries = subject.deliveries.messages().await.unwrap();
    while let Some(message) = deliveries.next().await {
        let (subject, consumer) = (subject.clone(), consumer.clone());
        let (message, handler) = (message.unwrap(), handler.clone());
        running.spawn(async move {
            if let Some(delay) = delay_at_first(&message) {
                return message.ack_with(AckKind::Nak(Some(delay))).await.unwrap();
            }
            let action = while_it_lasts(&message, handle(&consumer, &message, handler)).await;
            settle(&subject, &message, action).await;
        });
    }
}

async fn handle<H, F>(consumer: &Consumer<Failure>, message: &Message, handler: H) -> Action
where
    H: Fn(MessageId, Vec<u8>) -> F,
    F: Future<Output = Result<(), Failure>>,
{
    loop {
        consumer.ready().await;
        let call = |id| handler(id, message.payload.to_vec());
        let id = header(message, ID_HEADER);
        match consumer.handle(id, retries(message), call).await {
            Action::Pause { .. } => {}
            action => return action,
        }
    }
}

/// Tells the server that the message is being worked on, so that it goes to nobody else.
async fn while_it_lasts<F: Future>(message: &Message, work: F) -> F::Output {
    let mut work = pin!(work);
    loop {
        match tokio::time::timeout(ACK_WAIT / 3, &mut work).await {
            Ok(output) => return output,
            Err(_) => message.ack_with(AckKind::Progress).await.unwrap(),
        }
    }
}

async fn settle(subject: &Subject, message: &Message, action: Action) {
    let mut headers = message.headers.clone().unwrap_or_default();
    let place = match action {
        Action::Delay { by, retries: same } if same == retries(message) => {
            return message.ack_with(AckKind::Nak(Some(by))).await.unwrap();
        }
        Action::Delay { by, retries } => {
            headers.insert(RETRIES_HEADER, retries.to_string());
            headers.insert(DELAY_HEADER, by.as_millis().to_string());
            Some("main")
        }
        Action::Park => Some("parked"),
        Action::Dead { .. } => Some("dead"),
        Action::Ack | Action::Pause { .. } => None,
    };
    if let Some(reason) = action.reason_code() {
        headers.insert(REASON_HEADER, reason);
    }
    if let Some(place) = place {
        subject.put(place, headers, message.payload.to_vec()).await;
    }
    message.double_ack().await.unwrap();
}

fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let headers = message.headers.as_ref()?;
    headers.get(name).map(HeaderValue::as_str)
}

fn retries(message: &Message) -> u32 {
    let retries = header(message, RETRIES_HEADER).and_then(|retries| retries.parse().ok());
    retries.unwrap_or_default()
}

fn delay_at_first(message: &Message) -> Option<Duration> {
    let millis = header(message, DELAY_HEADER)?.parse().ok()?;
    let is_first = message.info().unwrap().delivered == 1;
    is_first.then(|| Duration::from_millis(millis))
}
