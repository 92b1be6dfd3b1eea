//! The queues: one for the messages, one for each delay, one for the parked, one for the dead.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};

/// The names of the queues around `orders.paid`:
///
/// | queue | holds |
/// |---|---|
/// | `orders.paid` | what is to be done |
/// | `orders.paid.delay.1000` … | what comes back after so many milliseconds |
/// | `orders.paid.parked` | what has an unknown outcome, until somebody looked |
/// | `orders.paid.dead` | what will never be done, with the reason in a header |
///
/// All are quorum queues, which have what they confirmed on disk, and hand an expired message on
/// only when its new queue has it. What the broker itself would drop from the first one (a
/// delivery limit, a length limit) goes to the dead.
///
/// A quorum queue counts how often a message was returned to it, and from RabbitMQ 4.0 on gives it
/// up at 20 unless told otherwise. Nothing here is returned on purpose, but a connection that is lost
/// and a process that is killed return what they had, and a service that crashes 20 times makes dead
/// letters of messages that had no chance. A policy with `delivery-limit` = -1 takes the limit away;
/// without one, look at the dead after such a night.
#[derive(Debug, Clone)]
pub struct Queues {
    main: String,
    delays: Vec<Duration>,
}

impl Queues {
    /// The queues around `main`, with delays of 1 s, 5 s, 30 s, 2 min and 10 min.
    #[must_use]
    pub fn new(main: impl Into<String>) -> Self {
        Self {
            main: main.into(),
            delays: [1, 5, 30, 120, 600].map(Duration::from_secs).into(),
        }
    }

    /// Other delays, in whole milliseconds, from short to long. A few are enough: a message waits
    /// for the next longer one. A time to live on each message would not do: the broker looks only
    /// at the first of a queue, and a long one holds up the short ones behind it.
    ///
    /// # Errors
    /// There is none, or one under a millisecond: what is to be delayed would come back at once, and
    /// go round and round.
    pub fn delays(mut self, delays: impl Into<Vec<Duration>>) -> Result<Self> {
        self.delays = delays.into();
        self.delays.sort();
        let shortest = self.delays.first();
        let shortest =
            shortest.context("name at least one delay: a message has to wait somewhere")?;
        ensure!(
            shortest.as_millis() > 0,
            "a delay of {shortest:?} is none; give whole milliseconds"
        );
        Ok(self)
    }

    /// What is to be done.
    #[must_use]
    pub fn main(&self) -> &str {
        &self.main
    }

    /// What has an unknown outcome.
    #[must_use]
    pub fn parked(&self) -> String {
        format!("{}.parked", self.main)
    }

    /// What will never be done.
    #[must_use]
    pub fn dead(&self) -> String {
        format!("{}.dead", self.main)
    }

    /// Where a message waits for at least `by`, or for the longest delay there is.
    #[must_use]
    pub fn delay(&self, by: Duration) -> String {
        let long_enough = self.delays.iter().find(|delay| **delay >= by);
        match long_enough.or(self.delays.last()) {
            Some(delay) => self.delay_of(*delay),
            None => self.main.clone(),
        }
    }

    fn delay_of(&self, delay: Duration) -> String {
        format!("{}.delay.{}", self.main, delay.as_millis())
    }

    /// Makes those that are not there.
    pub(super) async fn declare(&self, channel: &Channel) -> Result<()> {
        declare(channel, &self.parked(), quorum()).await?;
        declare(channel, &self.dead(), quorum()).await?;
        declare(channel, &self.main, leading_to(&self.dead())).await?;
        for delay in &self.delays {
            let mut arguments = leading_to(&self.main);
            let millis = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
            arguments.insert("x-message-ttl".into(), AMQPValue::LongLongInt(millis));
            declare(channel, &self.delay_of(*delay), arguments).await?;
        }
        Ok(())
    }
}

async fn declare(channel: &Channel, queue: &str, arguments: FieldTable) -> Result<()> {
    let options = QueueDeclareOptions::durable();
    channel
        .queue_declare(queue.into(), options, arguments)
        .await?;
    Ok(())
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

/// A queue whose expired and dropped messages go to `next`, and stay until that has confirmed them.
fn leading_to(next: &str) -> FieldTable {
    let mut arguments = quorum();
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-dead-letter-routing-key".into(), text(next));
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    // What that strategy asks for.
    arguments.insert("x-overflow".into(), text("reject-publish"));
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_for_the_next_longer_delay_or_the_longest() {
        let queues = Queues::new("q").delays([Duration::from_secs(5), Duration::from_secs(1)]);
        let queues = queues.unwrap();
        let delay = |millis| queues.delay(Duration::from_millis(millis));
        assert_eq!(delay(0), "q.delay.1000");
        assert_eq!(delay(1000), "q.delay.1000");
        assert_eq!(delay(1001), "q.delay.5000");
        assert_eq!(delay(60_000), "q.delay.5000");
    }

    #[test]
    fn delays_by_which_nothing_waits_are_refused() {
        for none in [
            vec![],
            vec![Duration::from_micros(999), Duration::from_secs(1)],
        ] {
            let refused = Queues::new("q").delays(none.clone());
            assert!(refused.is_err(), "{none:?}");
        }
    }
}
