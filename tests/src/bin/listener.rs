//! One process that consumes messages, to be killed. The effect of a message is a line with its id
//! in a file.
//!
//! Arguments: the broker's URL, the queue, the store's URL, the file, and where to stay: `nowhere`,
//! in the `body` after the effect, or before the `ack`. It says `staying` when it is there. At the
//! end of its stdin it takes no more messages, and ends when it has answered those that it has.

use std::env;
use std::fs::File;
use std::future::pending;
use std::io::{Write, stdin};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use idem_core::consumer::{Consumer, Meaning, MessageId};
use idem_core::{Error, Idempotency, Key, Policy};
use idem_examples::rabbit::{Message, Rabbit};

#[derive(Clone)]
struct Place {
    file: String,
    stay: String,
}

impl Place {
    fn effect(&self, id: &MessageId) -> std::io::Result<()> {
        let mut file = File::options().create(true).append(true).open(&self.file)?;
        writeln!(file, "{id}")
    }

    async fn stay_if(&self, here: &str) {
        if self.stay == here {
            println!("staying");
            pending::<()>().await;
        }
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [broker, queue, store, file, stay] = arguments.as_slice() else {
        bail!("needs BROKER QUEUE STORE FILE STAY, got {arguments:?}");
    };
    let idem = Idempotency::redis(store).await?;
    let place = Place {
        file: file.clone(),
        stay: stay.clone(),
    };
    let handler = move |message: Message| {
        let (idem, place) = (idem.clone(), place.clone());
        async move { handle(&idem, &place, message).await }
    };
    let consumer = Arc::new(Consumer::new(|error: &anyhow::Error| {
        match error.downcast_ref::<Error>() {
            Some(refusal) => Meaning::Refusal(refusal),
            None => Meaning::Retry,
        }
    }));
    Rabbit::new(broker, queue)
        .delays([Duration::from_millis(200), Duration::from_secs(1)])?
        .listen(consumer, handler, end_of_stdin())
        .await;
    Ok(())
}

async fn end_of_stdin() {
    let read = tokio::task::spawn_blocking(|| stdin().lines().for_each(drop));
    let _ = read.await;
}

async fn handle(idem: &Idempotency, place: &Place, message: Message) -> Result<()> {
    let key = Key::new("test:message", &message.id)?;
    // The shortest lease that is allowed: the next process waits for its end.
    let policy = Policy::new().lease(Duration::from_secs(1));
    let body = async || {
        place.effect(&message.id)?;
        place.stay_if("body").await;
        Ok::<_, anyhow::Error>(())
    };
    idem.run(key, policy, body).await?;
    place.stay_if("ack").await;
    Ok(())
}
