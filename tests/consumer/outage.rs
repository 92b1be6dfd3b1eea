//! A store that is away.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::StoreErrorKind;
use idem_core::consumer::{Action, Consumer, MessageId};
use idem_tests::body::Bodies;
use idem_tests::faulty::Fault;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::rig::{Aside, Engine, Failure, Listening, id, meaning, queue, soon};

const AWAY: Fault = Fault::fail(StoreErrorKind::Unavailable);
const MESSAGES: u32 = 20;

/// A service whose bodies only count.
#[derive(Clone)]
struct Service {
    engine: Engine,
    bodies: Bodies,
}

impl Service {
    fn without_its_store() -> Self {
        let engine = Engine::new();
        engine.store.all(AWAY);
        Self {
            engine,
            bodies: Bodies::default(),
        }
    }

    async fn run(&self, id: &MessageId) -> Result<(), Failure> {
        let body = async || {
            self.bodies.add();
            Ok(())
        };
        self.engine.run(id, body).await
    }
}

/// A broker of a few lines: ids, and how often each has failed.
type Queue = Arc<Mutex<VecDeque<(String, u32)>>>;

/// Takes one message after the other until none is left.
async fn work(queue: Queue, consumer: Arc<Consumer<Failure>>, service: Service) {
    let next = || queue.lock().unwrap().pop_front();
    while let Some((id, retries)) = next() {
        consumer.ready().await;
        let call = |id| {
            let service = service.clone();
            async move { service.run(&id).await }
        };
        match consumer.handle(Some(&id), retries, call).await {
            Action::Ack => {}
            Action::Pause { .. } => queue.lock().unwrap().push_front((id, retries)),
            Action::Delay { by, retries } => {
                sleep(by).await;
                queue.lock().unwrap().push_back((id, retries));
            }
            other => panic!("a message that was only waiting got {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_without_a_store_count_against_no_message() {
    let service = Service::without_its_store();
    let consumer = Arc::new(Consumer::new(meaning));
    let messages = (0..MESSAGES).map(|number| (format!("m-{number}"), 0));
    let queue = Arc::new(Mutex::new(messages.collect::<VecDeque<_>>()));
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        workers.spawn(work(queue.clone(), consumer.clone(), service.clone()));
    }
    sleep(Duration::from_mins(10)).await;
    let during = consumer.counts();
    // The store is asked once in each pause of five seconds, however many messages wait.
    assert!((118..=121).contains(&during.paused), "{during:?}");
    assert_eq!((during.acked, service.bodies.count()), (0, 0));

    service.engine.store.heal();
    workers.join_all().await;
    let after = consumer.counts();
    assert_eq!(after.acked, u64::from(MESSAGES));
    assert_eq!((after.parked, after.dead), (0, 0));
    assert_eq!(service.bodies.count(), MESSAGES);
}

#[tokio::test]
async fn a_queue_is_held_back_while_the_store_is_away_and_goes_on_by_itself() {
    let (rabbit, service) = (queue(), Service::without_its_store());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    for number in 0..MESSAGES {
        let id = id(&format!("m-{number}"));
        aside.link.publish(&id, b"").await.unwrap();
    }
    let handling = service.clone();
    let listening = Listening::start(&rabbit, move |message| {
        let service = handling.clone();
        async move { service.run(&message.id).await }
    });
    soon("it is held back", async || {
        listening.consumer.counts().paused >= 50
    })
    .await;
    assert_eq!(listening.consumer.counts().acked, 0);
    service.engine.store.heal();
    soon("all are done", async || {
        listening.consumer.counts().acked == u64::from(MESSAGES)
    })
    .await;
    let counts = listening.consumer.counts();
    listening.stop().await;
    assert_eq!((counts.parked, counts.dead), (0, 0));
    assert_eq!(service.bodies.count(), MESSAGES);
    aside.nothing_is_left().await;
}

#[tokio::test]
async fn a_consumer_that_is_held_back_can_be_stopped_and_leaves_its_messages() {
    let (rabbit, service) = (queue(), Service::without_its_store());
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    let handling = service.clone();
    let listening = Listening::start(&rabbit, move |message| {
        let service = handling.clone();
        async move { service.run(&message.id).await }
    });
    soon("it is held back", async || {
        listening.consumer.counts().paused >= 1
    })
    .await;
    listening.stop().await;
    let main = rabbit.queues().main().to_owned();
    soon("it is in its queue", async || {
        aside.link.count(&main).await.unwrap() == 1
    })
    .await;
}
