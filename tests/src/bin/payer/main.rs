//! One process of a service whose functions are guarded: told by lines on stdin what to call, it
//! says by lines on stdout what came of each call. `processes/payer.rs` is its other end.
//!
//! Arguments: the store's URL (or `cluster:` or `sentinel:` and a list of URLs), the ledger's file, the lease and the limit of a store call in
//! milliseconds. It says `ready`, or `failed` and why; then, for
//!
//! | line | its answer, `ID` first |
//! |---|---|
//! | `call ID FUNCTION ORDER PLAN RECOVERY` | outcome, detail, microseconds |
//! | `storm ID FUNCTION ORDER PLAN TASKS MICROS` | how many calls had which outcome; all begin at one moment, in microseconds since the epoch |
//! | `load ID FUNCTION ORDER PLAN TASKS CALLS` | the same, for orders numbered from 0 |
//! | `drop ID` | `dropped` instead of the call's own, unless that was given before |
//! | `open GATE` | none: bodies parked there go on |
//! | `drain ID MILLIS` | how many bodies had to be stopped |
//! | `counts ID` | what the engine counted |
//! | `look ID FUNCTION ORDER` | the record's status, or `awaited` (live, and somebody waits), `abandoned`, `absent` |

mod crowd;
mod functions;
mod ledger;
mod plan;

use std::collections::HashMap;
use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use idem_core::store::redis::RedisBuilder;
use idem_core::{Idempotency, Key, Outcome, RedisStore, StoreError, observe};
use idem_tests::sentinel::MASTER;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinHandle;

use crate::crowd::Crowd;
use crate::functions::{PayError, Receipt, Request};

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, ledger, lease, limit] = arguments.as_slice() else {
        bail!("needs URL LEDGER LEASE LIMIT, got {arguments:?}");
    };
    ledger::open(ledger)?;
    match engine(url, millis(lease)?, millis(limit)?).await {
        Ok(engine) => serve(&Arc::new(engine)).await,
        Err(error) => {
            println!("failed {} {error}", error.code());
            Ok(())
        }
    }
}

async fn engine(
    url: &str,
    lease: Duration,
    limit: Duration,
) -> Result<Idempotency, idem_core::Error> {
    let engine = Idempotency::builder(store(url).await?)
        .lease(lease)
        .limit(limit)
        .build()?;
    engine.install()?;
    Ok(engine)
}

/// One server, or `cluster:` or `sentinel:` and a list.
async fn store(url: &str) -> Result<RedisStore, StoreError> {
    match url.split_once(':') {
        Some(("cluster", nodes)) => RedisBuilder::cluster(nodes.split(',')),
        Some(("sentinel", watchers)) => RedisBuilder::sentinel(MASTER, watchers.split(',')),
        _ => RedisBuilder::server(url),
    }
    .connect()
    .await
}

async fn serve(engine: &Arc<Idempotency>) -> Result<()> {
    println!("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut calls = HashMap::new();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<&str> = line.split(' ').collect();
        obey(engine, &words, &mut calls).with_context(|| format!("told {line:?}"))?;
    }
    Ok(())
}

fn obey(
    engine: &Arc<Idempotency>,
    words: &[&str],
    calls: &mut HashMap<String, JoinHandle<()>>,
) -> Result<()> {
    match *words {
        ["call", id, function, order, plan, recovery] => {
            let request = Request::new(order, plan, recovery)?;
            let task = tokio::spawn(call(id.to_owned(), function.to_owned(), request));
            calls.insert(id.to_owned(), task);
        }
        ["storm", id, function, order, plan, tasks, at] => {
            let request = Request::new(order, plan, "")?;
            let crowd = Crowd::at(at.parse()?, tasks.parse()?);
            tokio::spawn(crowd.call(id.to_owned(), function.to_owned(), request));
        }
        ["load", id, function, order, plan, tasks, calls] => {
            let request = Request::new(order, plan, "")?;
            let crowd = Crowd::over(calls.parse()?, tasks.parse()?);
            tokio::spawn(crowd.call(id.to_owned(), function.to_owned(), request));
        }
        ["drop", id] => {
            let task = calls.remove(id).context("no such call")?;
            tokio::spawn(drop_call(id.to_owned(), task));
        }
        ["open", gate] => plan::open(gate),
        ["drain", id, millis] => {
            let (id, timeout) = (id.to_owned(), self::millis(millis)?);
            let engine = Arc::clone(engine);
            tokio::spawn(async move { println!("{id} {}", engine.drain(timeout).await) });
        }
        ["counts", id] => println!("{id} {:?}", engine.counts()),
        ["look", id, function, order] => {
            tokio::spawn(look(
                Arc::clone(engine),
                id.to_owned(),
                Key::new(function, order)?,
            ));
        }
        _ => bail!("not understood"),
    }
    Ok(())
}

async fn call(id: String, function: String, request: Request) {
    let begin = Instant::now();
    let (outcome, detail) = outcome(&function, request).await;
    println!("{id} {outcome} {detail} {}", begin.elapsed().as_micros());
}

/// Drops a call, and says so when it is gone.
async fn drop_call(id: String, task: JoinHandle<()>) {
    task.abort();
    if task.await.is_err() {
        println!("{id} dropped");
    }
}

/// What came of one call, in a word and a detail: the receipt's number, or the error's code.
async fn outcome(function: &str, request: Request) -> (&'static str, String) {
    let (result, observed) = observe(functions::call(function, request)).await;
    let outcome = match (observed, &result) {
        (Outcome::Refused, _) | (_, Err(PayError::Guard(_))) => "refused",
        (Outcome::Executed, Ok(_)) => "executed",
        (Outcome::Executed, Err(PayError::Declined)) => "declined",
        (Outcome::Replayed, _) => "replayed",
        (Outcome::Waited, _) => "waited",
        (Outcome::Recovered, _) => "recovered",
        (Outcome::Unguarded, _) => "unguarded",
        _ => "unexpected",
    };
    let detail = match result {
        Ok(Receipt { number }) => number.to_string(),
        Err(PayError::Declined) => "declined".to_owned(),
        Err(PayError::Guard(error)) => error.code().to_owned(),
    };
    (outcome, detail)
}

async fn look(engine: Arc<Idempotency>, id: String, key: Key) {
    let seen = match engine.peek(&key).await {
        Ok(Some(record)) => match record.running {
            Some(running) if running.is_abandoned => "abandoned".to_owned(),
            Some(running) if running.waiters => "awaited".to_owned(),
            _ => format!("{:?}", record.status).to_lowercase(),
        },
        Ok(None) => "absent".to_owned(),
        Err(error) => error.code().to_owned(),
    };
    println!("{id} {seen}");
}

fn millis(text: &str) -> Result<Duration> {
    Ok(Duration::from_millis(text.parse()?))
}
