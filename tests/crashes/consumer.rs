//! A consumer is killed with a message in its hands.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::Context;
use idem_core::consumer::MessageId;
use idem_examples::rabbit::{Link, Rabbit};
use idem_tests::long::report;
use idem_tests::mortal::Point;
use idem_tests::mortal::lease::effects;
use idem_tests::mortal::places::{Journal, Place, Placed, sqlite_with};
use idem_tests::process::Worker;
use idem_tests::rabbit::RabbitServer;
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::wait::until;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties};
use sqlx::{MySql, Postgres};
use tempfile::TempDir;

use crate::mortal::{SOON, fresh_number};
use crate::{blocking, kills};

static BROKER: LazyLock<RabbitServer> = LazyLock::new(|| RabbitServer::start().unwrap());

/// What becomes of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It is not seen again.
    Gone,
    /// It is delivered again, replayed and acknowledged.
    Replayed,
    /// It is delivered again, and its effect happens then.
    Run,
    /// It is delivered again, and parked.
    Parked,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "gone",
            Self::Replayed => "replayed",
            Self::Run => "run",
            Self::Parked => "parked",
        })
    }
}

/// Records, and what bodies do.
trait Host {
    /// What becomes of a message whose consumer died behind its effect, in the body.
    const IN_THE_BODY: Fate;

    fn url(&self) -> String;

    /// The file for effects.
    fn file(&self) -> String {
        String::new()
    }

    async fn effects(&self, number: i64) -> usize;
}

struct OnRedis {
    redis: RedisServer,
    folder: TempDir,
}

impl OnRedis {
    fn new() -> Self {
        Self {
            redis: RedisServer::start(RedisOptions::new()).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }
}

impl Host for OnRedis {
    const IN_THE_BODY: Fate = Fate::Parked;

    fn url(&self) -> String {
        self.redis.url()
    }

    fn file(&self) -> String {
        self.folder.path().join("effects").display().to_string()
    }

    async fn effects(&self, number: i64) -> usize {
        effects(self.file().as_ref(), number).unwrap()
    }
}

/// Transaction mode.
struct InTransaction<D: Placed>(Place<D>);

impl<D: Placed> Host for InTransaction<D> {
    const IN_THE_BODY: Fate = Fate::Run;

    fn url(&self) -> String {
        self.0.url.clone()
    }

    async fn effects(&self, number: i64) -> usize {
        let kept = D::kept(&self.0.pool, number).await.unwrap();
        assert_eq!(kept.effects, kept.successes, "{kept:?}");
        kept.effects.try_into().unwrap()
    }
}

/// A queue for one message that is in a consumer's hands when that is killed, and one behind it.
struct Queue<'a, H> {
    host: &'a H,
    rabbit: Rabbit,
    link: Link,
    aside: Channel,
    number: i64,
    behind: i64,
}

impl<'a, H: Host> Queue<'a, H> {
    async fn new(host: &'a H, aside: &Channel) -> Self {
        let number = fresh_number();
        // As the listener has them.
        let delays = [Duration::from_millis(200), Duration::from_secs(1)];
        let rabbit = Rabbit::new(BROKER.url(), format!("killed-{number}"));
        let rabbit = rabbit.delays(delays).unwrap();
        Self {
            host,
            link: rabbit.connect().await.unwrap(),
            rabbit,
            aside: aside.clone(),
            number,
            behind: fresh_number(),
        }
    }

    async fn publish(&self, number: i64) {
        let id = MessageId::new(&number.to_string()).unwrap();
        self.link.publish(&id, b"").await.unwrap();
    }

    async fn listener(&self, there: Option<Point>) -> Worker {
        let arguments = [
            BROKER.url(),
            self.rabbit.queues().main().to_owned(),
            self.host.url(),
            self.host.file(),
            there.map_or("nowhere".to_owned(), |point| point.to_string()),
        ];
        let start = || Worker::start(env!("CARGO_BIN_EXE_listener"), arguments).unwrap();
        blocking(start).await
    }

    /// A consumer has the message, and is killed there.
    async fn kill_one(&self, there: Point) {
        self.publish(self.number).await;
        if there == Point::AckDone {
            self.publish(self.behind).await;
        }
        let listener = self.listener(Some(there)).await;
        let ended = blocking(move || {
            if there != Point::AckSent {
                assert_eq!(listener.hear(SOON).unwrap(), "here");
                listener.kill().unwrap();
            }
            // Its stdin stays open: at the end of that it would go in peace.
            let ended = || listener.ended()?.context("it lives");
            until("its death", SOON, ended).unwrap()
        });
        assert_eq!(ended.await.signal(), Some(9), "{there}");
        soon("the broker sees that it is dead", async || {
            self.looked_at().await.consumer_count() == 0
        })
        .await;
    }

    async fn looked_at(&self) -> lapin::Queue {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let main = self.rabbit.queues().main().into();
        let declared = self
            .aside
            .queue_declare(main, passive, FieldTable::default());
        declared.await.unwrap()
    }

    async fn parked(&self) -> u32 {
        let parked = self.rabbit.queues().parked();
        self.link.count(&parked).await.unwrap()
    }

    /// What becomes of it in the end.
    async fn fate(&self, there: Point) -> Fate {
        let left = self.looked_at().await.message_count();
        let comes_again = if there == Point::AckDone {
            // The one behind it was never handled.
            left > 1
        } else {
            self.publish(self.behind).await;
            left > 0
        };
        let before = self.host.effects(self.number).await;
        let next = self.listener(None).await;
        soon("the end of both", async || {
            let number = self.host.effects(self.number).await == 1;
            number && self.host.effects(self.behind).await == 1
        })
        .await;
        let is_parked = comes_again && there == Point::Effect && H::IN_THE_BODY == Fate::Parked;
        if is_parked {
            soon("its being parked", async || self.parked().await == 1).await;
        }
        // In peace: what it has it sees through.
        assert!(blocking(move || next.finish(SOON).unwrap()).await.success());
        assert_eq!(self.looked_at().await.message_count(), 0);
        assert_eq!(self.parked().await, u32::from(is_parked));
        assert_eq!(self.host.effects(self.number).await, 1);
        match (comes_again, is_parked) {
            (false, _) => Fate::Gone,
            (true, true) => Fate::Parked,
            (true, false) if before == 0 => Fate::Run,
            (true, false) => Fate::Replayed,
        }
    }
}

async fn soon(what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < SOON, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Every second kill is in the second of `hosts`, which is called `name` with the first.
// V01, E09
async fn a_message_has_one_effect_wherever_its_consumer_dies<H: Host>(name: &str, hosts: [&H; 2]) {
    let url = blocking(|| BROKER.url()).await;
    let connection = Connection::connect(&url, ConnectionProperties::default()).await;
    let connection = connection.unwrap();
    let aside = connection.create_channel().await.unwrap();
    let points = [
        (Point::Effect, [H::IN_THE_BODY; 2]),
        (Point::Handled, [Fate::Replayed; 2]),
        // A race decides.
        (Point::AckSent, [Fate::Gone, Fate::Replayed]),
        (Point::AckDone, [Fate::Gone; 2]),
    ];
    for (point, claimed) in points {
        let mut queues = Vec::new();
        for kill in 0..kills(3, 50) {
            let queue = Queue::new(hosts[kill % 2], &aside).await;
            queue.kill_one(point).await;
            queues.push(queue);
        }
        let mut seen = BTreeMap::<_, usize>::new();
        for queue in queues {
            let fate = queue.fate(point).await;
            assert!(claimed.contains(&fate), "{point}: {fate}");
            *seen.entry(fate).or_default() += 1;
        }
        let seen: Vec<_> = seen
            .iter()
            .map(|(fate, count)| format!("{fate} {count}"))
            .collect();
        let seen = seen.join(", ");
        report("crashes", format_args!("consumer, {name}, {point}: {seen}"));
    }
}

mod on {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn redis_a_message_has_one_effect_wherever_its_consumer_dies() {
        let host = OnRedis::new();
        a_message_has_one_effect_wherever_its_consumer_dies("Redis, hold", [&host; 2]).await;
    }

    async fn in_transaction<D: Placed>() {
        let (host, name) = (InTransaction(D::place().await), format!("{}, tx", D::NAME));
        a_message_has_one_effect_wherever_its_consumer_dies(&name, [&host; 2]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres_a_message_has_one_effect_wherever_its_consumer_dies() {
        in_transaction::<Postgres>().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn mariadb_a_message_has_one_effect_wherever_its_consumer_dies() {
        in_transaction::<MySql>().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite_a_message_has_one_effect_wherever_its_consumer_dies() {
        let place = async |journal| InTransaction(sqlite_with(journal).await);
        let one = place(Journal::WriteAhead).await;
        let other = place(Journal::Rollback).await;
        let name = "SQLite, each journal for half of them, tx";
        a_message_has_one_effect_wherever_its_consumer_dies(name, [&one, &other]).await;
    }
}
