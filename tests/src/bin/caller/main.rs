//! One process of a service under faults: a few clients that call guarded functions on keys which
//! other processes call too, and write down what they see. The suite `histories` is its other end.
//!
//! Arguments: what is called (`hold`, `recover`, `rerun`, `transaction`, `lock`, or what has to be
//! caught: `textbook`, `slow textbook`, `apart`), the store's URL (or `sentinel:` or `cluster:` and a
//! list), the folder of the histories, a seed, the number of this worker, how many clients, for how many
//! milliseconds at most a client rests between calls, how many keys are called most, and after how many
//! operations the next one is new.
//! It says `ready`, and goes on until it is told anything; then its clients finish, it says `done`, and
//! stays until its stdin ends. The worker that [`SWEEPER`] numbers asks every key until it has an
//! answer instead.

mod apart;
mod body;
mod clients;
mod functions;
mod locks;
mod service;
mod textbook;
mod unconfirmed;

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use idem_tests::history::{Journal, SWEEPER, keys};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::clients::{Clients, Keys};
use crate::service::Service;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [
        what,
        url,
        folder,
        seed,
        worker,
        clients,
        rest,
        hot,
        operations,
    ] = arguments.as_slice()
    else {
        bail!("needs WHAT URL FOLDER SEED WORKER CLIENTS REST HOT OPERATIONS, got {arguments:?}");
    };
    unconfirmed::listen()?;
    let folder = Path::new(folder);
    let worker = worker.parse()?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let clients = Clients {
        service: Service::open(what, url)?,
        journal: Arc::new(Journal::open(folder, worker)?),
        seed: seed.parse()?,
        count: clients.parse()?,
        rest: Duration::from_millis(rest.parse()?),
        keys: Keys {
            hot: hot.parse()?,
            operations: operations.parse()?,
        },
    };
    println!("ready");
    if worker == SWEEPER {
        clients.sweep(keys(folder)?).await?;
    } else {
        let stop = Arc::new(AtomicBool::new(false));
        let told = {
            let (stop, lines) = (Arc::clone(&stop), &mut lines);
            async move {
                let heard = lines.next_line().await;
                stop.store(true, Ordering::Relaxed);
                heard
            }
        };
        let (called, heard) = tokio::join!(clients.call(&stop), told);
        called?;
        heard?;
    }
    println!("done");
    lines.next_line().await?;
    Ok(())
}
