//! A consumer is killed with a message in its hands.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use idem_core::consumer::MessageId;
use idem_examples::rabbit::{Link, Rabbit};
use idem_tests::long::report;
use idem_tests::process::Worker;
use idem_tests::rabbit::RabbitServer;
use idem_tests::redis::{RedisOptions, RedisServer};
use tempfile::TempDir;

use crate::mortal::SOON;
use crate::{blocking, kills};

static BROKER: LazyLock<RabbitServer> = LazyLock::new(|| RabbitServer::start().unwrap());

/// A store, and a file of effects.
struct Scene {
    redis: RedisServer,
    folder: TempDir,
}

/// A queue and who is on it.
struct Queue<'a> {
    scene: &'a Scene,
    rabbit: Rabbit,
    link: Link,
}

impl Scene {
    fn new() -> Self {
        Self {
            redis: RedisServer::start(RedisOptions::new()).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    async fn queue(&self, name: &str) -> Queue<'_> {
        let url = blocking(|| BROKER.url()).await;
        // As the listener has them.
        let delays = [Duration::from_millis(200), Duration::from_secs(1)];
        let rabbit = Rabbit::new(url, name).delays(delays).unwrap();
        Queue {
            scene: self,
            link: rabbit.connect().await.unwrap(),
            rabbit,
        }
    }

    fn file(&self) -> String {
        self.folder.path().join("effects").display().to_string()
    }

    /// How often the effect of each message has happened.
    fn effects(&self) -> BTreeMap<String, usize> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        let mut effects = BTreeMap::new();
        for id in text.lines() {
            *effects.entry(id.to_owned()).or_default() += 1;
        }
        effects
    }
}

impl Queue<'_> {
    async fn listener(&self, stay: &str) -> Worker {
        let arguments = [
            BROKER.url(),
            self.rabbit.queues().main().to_owned(),
            self.scene.redis.url(),
            self.scene.file(),
            stay.to_owned(),
        ];
        let start = || Worker::start(env!("CARGO_BIN_EXE_listener"), arguments).unwrap();
        blocking(start).await
    }

    async fn publish(&self, id: &str) {
        let id = MessageId::new(id).unwrap();
        self.link.publish(&id, b"").await.unwrap();
    }

    /// A listener is killed while it stays `there` with a message.
    async fn kill_one(&self, there: &str, id: &str) {
        self.publish(id).await;
        let listener = self.listener(there).await;
        let killed = blocking(move || {
            assert_eq!(listener.hear(SOON).unwrap(), "staying");
            listener.kill().unwrap();
        });
        killed.await;
    }

    async fn parked(&self) -> u32 {
        let parked = self.rabbit.queues().parked();
        self.link.count(&parked).await.unwrap()
    }
}

async fn soon(what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < SOON, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

// V01
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn between_effect_and_acknowledgement_the_message_comes_again_and_has_no_second_effect() {
    let scene = Scene::new();
    let queue = scene.queue("acknowledged").await;
    for kill in 0..kills(5, 50) {
        let (killed, after) = (format!("killed-{kill}"), format!("after-{kill}"));
        queue.kill_one("ack", &killed).await;
        let next = queue.listener("nowhere").await;
        queue.publish(&after).await;
        let done = async || {
            let effects = scene.effects();
            effects.contains_key(&killed) && effects.contains_key(&after)
        };
        soon("the message and the one behind it", done).await;
        // In peace: otherwise the next one to be killed could have this one's last message, too.
        assert!(blocking(move || next.finish(SOON).unwrap()).await.success());
    }
    let effects = scene.effects();
    assert_eq!(effects.len(), 2 * kills(5, 50));
    assert!(effects.values().all(|count| *count == 1), "{effects:?}");
    assert_eq!(queue.parked().await, 0);
    let kills = kills(5, 50);
    report(
        "crashes",
        format_args!("consumer, before its acknowledgement: {kills} kills, {kills} replays"),
    );
}

// E09
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_body_after_its_effect_the_message_is_parked_and_has_no_second_effect() {
    let scene = Scene::new();
    let mut queues = Vec::new();
    for kill in 0..kills(5, 50) {
        let queue = scene.queue(&format!("parked-{kill}")).await;
        queue.kill_one("body", &format!("killed-{kill}")).await;
        queues.push(queue);
    }
    for queue in &queues {
        let next = queue.listener("nowhere").await;
        soon("its being parked", async || queue.parked().await == 1).await;
        blocking(move || next.kill().unwrap()).await;
    }
    let effects = scene.effects();
    assert_eq!(effects.len(), kills(5, 50));
    assert!(effects.values().all(|count| *count == 1), "{effects:?}");
    let kills = kills(5, 50);
    report(
        "crashes",
        format_args!("consumer, in the body: {kills} kills, {kills} parked"),
    );
}
