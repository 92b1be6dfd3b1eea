//! A process that is killed while it has a message.

use std::fs;
use std::time::Duration;

use idem_core::engine::Changes;
use idem_core::{Idempotency, Key, NotDone};
use idem_examples::rabbit::Rabbit;
use idem_tests::mortal::Point;
use idem_tests::process::Worker;
use idem_tests::redis::{RedisOptions, RedisServer};
use lapin::BasicProperties;
use tempfile::TempDir;

use crate::rig::{Aside, broker_url, id, queue, soon};

const SOON: Duration = Duration::from_mins(1);

struct Scene {
    rabbit: Rabbit,
    redis: RedisServer,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self {
            rabbit: queue()
                .delays([Duration::from_millis(200), Duration::from_secs(1)])
                .unwrap(),
            redis: RedisServer::start(RedisOptions::new()).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self) -> String {
        self.folder.path().join("effects").display().to_string()
    }

    fn listener(&self, there: Option<Point>) -> Worker {
        let (broker, queue) = (broker_url(), self.rabbit.queues().main().to_owned());
        let arguments = [
            broker,
            queue,
            self.redis.url(),
            self.file(),
            there.map_or("nowhere".to_owned(), |point| point.to_string()),
        ];
        Worker::start(env!("CARGO_BIN_EXE_listener"), arguments).unwrap()
    }

    /// A listener is killed while it stays `there` with the message `m-1`.
    fn kill_one(&self, there: Point) {
        let listener = self.listener(Some(there));
        assert_eq!(listener.hear(SOON).unwrap(), "here");
        listener.kill().unwrap();
    }

    /// The ids whose effects have happened, in order.
    fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

// V01
#[tokio::test]
async fn a_crash_between_effect_and_acknowledgement_is_a_redelivery_and_no_second_effect() {
    let scene = Scene::new();
    let aside = Aside::on_the_broker_of_all(&scene.rabbit).await;
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    scene.kill_one(Point::Handled);
    assert_eq!(scene.effects(), ["m-1"]);
    let main = scene.rabbit.queues().main().to_owned();
    soon("the redelivery", async || {
        aside.link.count(&main).await.unwrap() == 1
    })
    .await;
    let second = scene.listener(None);
    // The second message shows that the first was seen, and acknowledged.
    aside.link.publish(&id("m-2"), b"").await.unwrap();
    soon("the second effect", async || scene.effects().len() == 2).await;
    second.kill().unwrap();
    assert_eq!(scene.effects(), ["m-1", "m-2"]);
}

// E09
#[tokio::test]
async fn a_crash_in_the_body_parks_its_message_and_an_operators_word_lets_it_go_on() {
    let scene = Scene::new();
    let aside = Aside::on_the_broker_of_all(&scene.rabbit).await;
    aside.link.publish(&id("m-1"), b"").await.unwrap();
    scene.kill_one(Point::Effect);
    let second = scene.listener(None);
    aside.until_parked(1).await;
    assert_eq!(aside.link.unpark().await.unwrap(), 1);
    // Nobody has looked yet: nothing runs.
    aside.until_parked(1).await;
    assert_eq!(scene.effects(), ["m-1"]);

    let idem = Idempotency::redis(&scene.redis.url()).await.unwrap();
    let key = Key::new("test:message", "m-1").unwrap();
    assert_eq!(idem.resolve(&key, NotDone).await.unwrap(), Changes::Done);
    assert_eq!(aside.link.unpark().await.unwrap(), 1);
    soon("the retry", async || scene.effects().len() == 2).await;
    aside.link.publish(&id("m-2"), b"").await.unwrap();
    soon("the next one", async || scene.effects().len() == 3).await;
    second.kill().unwrap();
    assert_eq!(scene.effects(), ["m-1", "m-1", "m-2"]);
}

#[tokio::test]
async fn a_parked_message_that_can_not_go_on_stays_parked() {
    let rabbit = queue();
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    let properties = BasicProperties::default().with_message_id("m-1".into());
    aside
        .publish_to(&rabbit.queues().parked(), b"", properties)
        .await;
    aside.until_parked(1).await;
    aside.delete(rabbit.queues().main()).await;
    assert!(aside.link.unpark().await.is_err());
    aside.until_parked(1).await;
}
