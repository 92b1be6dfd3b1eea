//! What the guard costs: beside a raw loop of two scripts over the same client, beside its peers,
//! and beside the same business transaction without it, in one run.

mod beside;
mod counts;
mod databases;
mod order;
mod rounds;
mod schemes;
mod sides;
mod table;
mod valgrind;

use std::{env, process};

use anyhow::{Result, bail};
use idem_tests::redis::{RedisOptions, RedisServer};
use tokio::runtime::{Builder, Runtime};

use crate::rounds::{Contestant, Load};
use crate::sides::{Cached, Idempotent, Name, Ours, OursWithFingerprint, Raw};

const LOADS: [Load; 3] = [
    Load {
        tasks: 1,
        calls: 4_096,
    },
    Load {
        tasks: 64,
        calls: 16_384,
    },
    Load {
        tasks: 512,
        calls: 16_384,
    },
];

const ROUNDS: usize = 9;

/// All tables, in their order.
const PARTS: [fn(usize) -> Result<()>; 3] = [guard, schemes, databases];

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => PARTS.iter().try_for_each(|part| part(ROUNDS)),
        ["--rounds", rounds] => {
            let rounds = rounds.parse()?;
            PARTS.iter().try_for_each(|part| part(rounds))
        }
        ["guard", "--rounds", rounds] => guard(rounds.parse()?),
        ["schemes", "--rounds", rounds] => schemes(rounds.parse()?),
        ["databases", "--rounds", rounds] => databases(rounds.parse()?),
        ["load", side, tasks, calls, url] => load(side, tasks.parse()?, calls.parse()?, url),
        ["work", side, kind, calls, url] => valgrind::work(side, kind, calls.parse()?, url),
        _ => bail!("usage: idem-bench [[guard | schemes | databases] --rounds N]"),
    }
}

/// The runtime of a client that has so many threads. With one, the other core is the server's and
/// no task changes threads: the strictest look at what a call costs. Two are what `#[tokio::main]`
/// gives a service on a machine like this one.
fn runtime(threads: usize) -> Result<Runtime> {
    let mut builder = match threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    Ok(builder.enable_all().build()?)
}

fn guard(rounds: usize) -> Result<()> {
    let server = RedisServer::start(RedisOptions::default())?;
    println!(
        "redis-server {}, {rounds} rounds\n",
        server.info("redis_version")?
    );
    for threads in [1, 2] {
        println!("## A client of {threads} thread(s)\n");
        runtime(threads)?.block_on(times(&server, rounds))?;
    }
    println!("## Counted\n");
    runtime(1)?.block_on(async {
        let sides = connect_all(&server.url()).await?;
        counts::bytes(&server, &sides).await?;
        counts::memory(&server, &sides).await
    })?;
    valgrind::counts(&server.url())
}

fn schemes(rounds: usize) -> Result<()> {
    let server = RedisServer::start(RedisOptions::default())?;
    println!("\n## Tokens and locks, {rounds} rounds\n");
    runtime(2)?.block_on(schemes::compare(&server, rounds))
}

fn databases(rounds: usize) -> Result<()> {
    println!("## Beside the same transaction without the guard, {rounds} rounds\n");
    runtime(2)?.block_on(async {
        databases::postgres::compare(rounds).await?;
        databases::sqlite::compare(rounds).await
    })
}

async fn times(server: &RedisServer, rounds: usize) -> Result<()> {
    let sides = connect_all(&server.url()).await?;
    for load in LOADS {
        let times = rounds::measure(server, &sides, load, rounds).await?;
        table::times(&sides, load, &times);
    }
    Ok(())
}

/// Nothing but first calls of one side, for a profiler.
fn load(side: &str, tasks: u64, calls: u64, url: &str) -> Result<()> {
    let name = Name::of_word(side)?;
    let from = u64::from(process::id()) << 32;
    runtime(1)?.block_on(async {
        let side = connect(name, url).await?;
        side.run(Load { tasks, calls }, from).await.map(drop)
    })
}

async fn connect_all(url: &str) -> Result<Vec<Contestant>> {
    let mut sides = Vec::new();
    for name in Name::ALL {
        sides.push(connect(name, url).await?);
    }
    Ok(sides)
}

async fn connect(name: Name, url: &str) -> Result<Contestant> {
    match name {
        Name::Raw => Contestant::connect::<Raw>(name, url).await,
        Name::Ours => Contestant::connect::<Ours>(name, url).await,
        Name::OursWithFingerprint => Contestant::connect::<OursWithFingerprint>(name, url).await,
        Name::Idempotent => Contestant::connect::<Idempotent>(name, url).await,
        Name::Cached => Contestant::connect::<Cached>(name, url).await,
    }
}
