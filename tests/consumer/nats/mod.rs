//! The same rules on another broker, which the adapter does not know either.

mod glue;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use idem_core::StoreErrorKind;
use idem_core::consumer::{Consumer, MessageId, REASON_HEADER};
use idem_tests::body::{Bodies, Held};
use idem_tests::faulty::Fault;
use idem_tests::nats::NatsServer;
use tokio::task::JoinHandle;

use self::glue::{ID_HEADER, Subject, listen};
use crate::rig::{Engine, Failure, RULES, meaning, soon};

static SERVER: LazyLock<NatsServer> = LazyLock::new(|| NatsServer::start().unwrap());

/// A subject of its own.
async fn subject(name: &'static str) -> Subject {
    Subject::create(&SERVER.url(), name).await
}

/// A service that does what the payload says, and stays after its body where the test asks for it.
#[derive(Clone)]
struct Service {
    engine: Engine,
    bodies: Bodies,
    stay: Option<Held>,
}

impl Service {
    fn new() -> Self {
        Self {
            engine: Engine::new(),
            bodies: Bodies::default(),
            stay: None,
        }
    }

    async fn run(self, id: MessageId, payload: Vec<u8>) -> Result<(), Failure> {
        let word = String::from_utf8(payload).map_err(|_| Failure::Unreadable)?;
        let body = async || match (word.as_str(), self.bodies.add()) {
            ("hopeless", _) => Err(Failure::Hopeless),
            ("fails first", 1) => Err(Failure::Passing),
            _ => Ok(()),
        };
        let result = self.engine.run(&id, body).await;
        if let Some(held) = self.stay {
            held.stay().await;
        }
        result
    }

    fn start(&self, subject: &Subject) -> (Arc<Consumer<Failure>>, JoinHandle<()>) {
        let consumer = Arc::new(Consumer::new(meaning).rules(RULES));
        let service = self.clone();
        let handler = move |id, payload| service.clone().run(id, payload);
        let listening = listen(subject.clone(), consumer.clone(), handler);
        (consumer, tokio::spawn(listening))
    }
}

// V01, N19
#[tokio::test]
async fn on_nats_duplicates_are_acknowledged_and_poison_is_dead_with_its_id() {
    let (subject, service) = (subject("poison").await, Service::new());
    subject.publish(Some("m-1"), b"fine").await;
    subject.publish(Some("m-1"), b"fine").await;
    subject.publish(Some("m-2"), b"hopeless").await;
    subject.publish(Some("m-3"), b"\xff").await;
    subject.publish(None, b"fine").await;
    let (consumer, listening) = service.start(&subject);
    let mut dead = Vec::new();
    for message in subject.dead(3).await {
        let headers = message.headers.clone().unwrap();
        let text = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        dead.push((
            text(ID_HEADER),
            text(REASON_HEADER),
            message.payload.to_vec(),
        ));
    }
    dead.sort();
    let expected = [
        (None, "missing_id", b"fine".to_vec()),
        (Some("m-2"), "rejected", b"hopeless".to_vec()),
        (Some("m-3"), "unreadable", b"\xff".to_vec()),
    ];
    let expected = expected
        .map(|(id, reason, payload)| (id.map(str::to_owned), Some(reason.to_owned()), payload));
    assert_eq!(dead, expected);
    soon("all are settled", async || subject.is_empty().await).await;
    // The duplicate may have come while the first was running, and been delayed.
    assert_eq!(consumer.counts().acked, 2);
    assert_eq!(service.bodies.count(), 2);
    listening.abort();
}

#[tokio::test]
async fn on_nats_a_failure_comes_back_counted_and_is_done() {
    let (subject, service) = (subject("failure").await, Service::new());
    subject.publish(Some("m-1"), b"fails first").await;
    let (consumer, listening) = service.start(&subject);
    soon("it is done", async || consumer.counts().acked == 1).await;
    soon("all are settled", async || subject.is_empty().await).await;
    let counts = consumer.counts();
    assert_eq!((counts.delayed, counts.dead), (1, 0));
    assert_eq!(service.bodies.count(), 2);
    listening.abort();
}

// V01
#[tokio::test]
async fn on_nats_a_consumer_that_is_gone_before_the_acknowledgement_leaves_a_duplicate() {
    let (subject, mut service) = (subject("gone").await, Service::new());
    let held = Held::new();
    service.stay = Some(held.clone());
    subject.publish(Some("m-1"), b"fine").await;
    let (first, listening) = service.start(&subject);
    held.entered().await;
    listening.abort();
    service.stay = None;
    let (second, listening) = service.start(&subject);
    soon("the redelivery", async || second.counts().acked == 1).await;
    assert_eq!((first.counts().acked, service.bodies.count()), (0, 1));
    listening.abort();
}

#[tokio::test]
async fn on_nats_a_store_that_is_away_for_longer_than_the_brokers_patience_counts_against_nothing()
{
    let (subject, service) = (subject("outage").await, Service::new());
    let away = Fault::fail(StoreErrorKind::Unavailable);
    service.engine.store.all(away);
    for number in 0..5 {
        let id = format!("m-{number}");
        subject.publish(Some(&id), b"fine").await;
    }
    let begin = tokio::time::Instant::now();
    let (consumer, listening) = service.start(&subject);
    soon("it lasts", async || {
        begin.elapsed() > glue::ACK_WAIT + Duration::from_secs(1) && consumer.counts().paused > 5
    })
    .await;
    assert_eq!(consumer.counts().acked, 0);
    service.engine.store.heal();
    soon("all are done", async || consumer.counts().acked == 5).await;
    soon("all are settled", async || subject.is_empty().await).await;
    let counts = consumer.counts();
    assert_eq!(
        (counts.parked, counts.dead, service.bodies.count()),
        (0, 0, 5)
    );
    listening.abort();
}
