//! One process that consumes messages, to be killed. The effect of a message is a line with its id
//! in a file; or, in transaction mode, a row with the number that is its id.
//!
//! Arguments: the broker's URL, the queue, the store's URL (of a database it is transaction mode),
//! the file, and the point at which it says `here` and stays, or dies, or `nowhere`. At the end of
//! its stdin it takes no more messages, and ends when it has answered those that it has.

use std::env;
use std::fs::File;
use std::io::{Write, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use idem_core::consumer::{Consumer, Meaning, MessageId};
use idem_core::{Error, Idempotency, Key, MemoryStore, Policy};
use idem_examples::rabbit::{Message, Rabbit};
use idem_tests::mortal::base::Base;
use idem_tests::mortal::{Point, transaction, trap, wire};
use sqlx::{MySql, Pool, Postgres, Sqlite};

/// Where effects and records are.
enum Place {
    File { file: String, idem: Idempotency },
    Postgres(Table<Postgres>),
    MySql(Table<MySql>),
    Sqlite(Table<Sqlite>),
}

struct Table<D: sqlx::Database> {
    pool: Pool<D>,
    idem: Idempotency,
}

impl<D: Base> Table<D> {
    fn open(url: &str) -> Result<Self> {
        Ok(Self {
            pool: D::open(url)?,
            // Its store is never asked.
            idem: Idempotency::builder(MemoryStore::new()).build()?,
        })
    }

    async fn take(&self, id: &MessageId) -> Result<()> {
        transaction::once(&self.idem, &self.pool, id.as_str().parse()?).await?;
        Ok(())
    }
}

impl Place {
    async fn new(store: &str, file: String) -> Result<Self> {
        Ok(match store.split_once(':') {
            Some(("postgres", _)) => Self::Postgres(Table::open(store)?),
            Some(("mysql", _)) => Self::MySql(Table::open(store)?),
            Some(("sqlite", _)) => Self::Sqlite(Table::open(store)?),
            _ => Self::File {
                file,
                idem: Idempotency::redis(store).await?,
            },
        })
    }

    async fn take(&self, id: &MessageId) -> Result<()> {
        match self {
            Self::File { file, idem } => note_once(idem, file, id).await,
            Self::Postgres(table) => table.take(id).await,
            Self::MySql(table) => table.take(id).await,
            Self::Sqlite(table) => table.take(id).await,
        }
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [broker, queue, store, file, point] = arguments.as_slice() else {
        bail!("needs BROKER QUEUE STORE FILE POINT, got {arguments:?}");
    };
    if point != "nowhere" {
        trap::set(point.parse()?, 1);
    }
    let broker = if trap::is(Point::AckSent) {
        wire::through(broker)?
    } else {
        broker.clone()
    };
    // One at a time: then the next message comes when the last one was acknowledged.
    let at_once = if trap::is(Point::AckDone) { 1 } else { 16 };
    let place = Arc::new(Place::new(store, file.clone()).await?);
    let handler = move |message: Message| {
        let place = place.clone();
        async move { handle(&place, message).await }
    };
    let consumer = Arc::new(Consumer::new(|error: &anyhow::Error| {
        match error.downcast_ref::<Error>() {
            Some(refusal) => Meaning::Refusal(refusal),
            None => Meaning::Retry,
        }
    }));
    Rabbit::new(broker, queue)
        .prefetch(at_once)?
        .delays([Duration::from_millis(200), Duration::from_secs(1)])?
        .listen(consumer, handler, end_of_stdin())
        .await;
    Ok(())
}

async fn end_of_stdin() {
    let read = tokio::task::spawn_blocking(|| stdin().lines().for_each(drop));
    let _ = read.await;
}

async fn handle(place: &Place, message: Message) -> Result<()> {
    static HAS_TAKEN_ONE: AtomicBool = AtomicBool::new(false);
    if HAS_TAKEN_ONE.load(Ordering::SeqCst) {
        trap::at(Point::AckDone);
    }
    place.take(&message.id).await?;
    HAS_TAKEN_ONE.store(true, Ordering::SeqCst);
    trap::at(Point::Handled);
    // What this process sends to its broker next.
    trap::count_sends(Point::AckSent);
    Ok(())
}

async fn note_once(idem: &Idempotency, file: &str, id: &MessageId) -> Result<()> {
    let key = Key::new("test:message", id)?;
    // The shortest lease that is allowed: the next process waits for its end.
    let policy = Policy::new().lease(Duration::from_secs(1));
    let body = async || {
        let mut file = File::options().create(true).append(true).open(file)?;
        writeln!(file, "{id}")?;
        trap::at(Point::Effect);
        anyhow::Ok(())
    };
    idem.run(key, policy, body).await
}
