//! One process that makes one guarded call and dies in it: of itself, or it says `here` and waits
//! to be killed. If it was to die at a send that there was not, it says how many there were, and ends.
//!
//! Arguments: `transaction` or the name of a mode in lease mode, the URL of the store, the number of
//! the request, the point, at the how manieth send of those that lie there, and the ledger's file.

use std::env;
use std::path::Path;

use anyhow::{Context, Result, bail};
use idem_core::{Idempotency, MemoryStore, RedisStore};
use idem_tests::mortal::base::Base;
use idem_tests::mortal::lease::{Call, Engine};
use idem_tests::mortal::{Body, Mode, transaction, trap, wire};
use sqlx::{MySql, Postgres, Sqlite};

struct Order {
    mode: String,
    url: String,
    number: i64,
    ledger: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [mode, url, number, point, nth, ledger] = arguments.as_slice() else {
        bail!("needs MODE URL NUMBER POINT NTH LEDGER, got {arguments:?}");
    };
    trap::set(point.parse()?, nth.parse()?);
    let (scheme, _) = url.split_once(':').context("no URL")?;
    let order = |url: String| {
        anyhow::Ok(Order {
            mode: mode.clone(),
            url,
            number: number.parse()?,
            ledger: ledger.clone(),
        })
    };
    match scheme {
        "sqlite" => {
            trap::count_time();
            obey::<Sqlite>(order(url.clone())?).await
        }
        "postgres" => obey::<Postgres>(order(wire::through(url)?)?).await,
        "mysql" => obey::<MySql>(order(wire::through(url)?)?).await,
        _ => on_redis(order(wire::through(url)?)?).await,
    }
}

async fn obey<D: Base>(order: Order) -> Result<()> {
    let pool = D::open(&order.url)?;
    // What connecting sends is not what is counted.
    drop(pool.acquire().await?);
    if order.mode == "transaction" {
        // Its store is never asked.
        let idem = Idempotency::builder(MemoryStore::new()).build()?;
        transaction::once(&idem, &pool, order.number).await?;
        return Ok(());
    }
    let call = Call {
        engine: &Engine::new(D::store(pool.clone()))?,
        mode: Mode::named(&order.mode)?,
        number: order.number,
    };
    match call.mode.body {
        Body::SettlesIn => call.with_a_database(&pool).await?,
        _ => call.with_a_ledger(Path::new(&order.ledger)).await?,
    };
    Ok(())
}

async fn on_redis(order: Order) -> Result<()> {
    let call = Call {
        engine: &Engine::new(RedisStore::connect(&order.url).await?)?,
        mode: Mode::named(&order.mode)?,
        number: order.number,
    };
    call.with_a_ledger(Path::new(&order.ledger)).await?;
    Ok(())
}
