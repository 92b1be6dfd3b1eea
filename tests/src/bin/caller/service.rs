//! What is called, and on which store.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use fastrand::Rng;
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{PostgresStore, Store};
use idem_core::{Idempotency, Policy, RedisStore};
use idem_tests::history::{LEASE, What};
use idem_tests::sentinel::MASTER;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::apart;
use crate::body::{Call, Failed, Plan};
use crate::functions;
use crate::locks;
use crate::textbook::Textbook;

/// How long a store call may take.
const LIMIT: Duration = Duration::from_millis(500);
/// How long a call waits for another one, if it does.
pub(crate) const WAIT: Duration = Duration::from_secs(1);

/// A function, and what guards it.
#[derive(Clone)]
pub(crate) enum Service {
    Hold(Engines),
    Recover(Engines),
    Rerun(Engines),
    Transaction(Engines, PgPool),
    Lock(Engines),
    Textbook(Textbook),
    Apart(PgPool),
}

/// The same store for callers who are told of a live attempt, and for those who wait for it.
#[derive(Clone)]
pub(crate) struct Engines {
    told: Idempotency,
    waiting: Idempotency,
}

impl Service {
    /// Connects when something is called.
    pub(crate) fn open(what: &str, url: &str) -> Result<Self> {
        Ok(match what {
            "hold" => Self::Hold(Engines::open(url)?),
            "recover" => Self::Recover(Engines::open(url)?),
            "rerun" => Self::Rerun(Engines::open(url)?),
            "transaction" => Self::Transaction(Engines::open(url)?, pool(url)?),
            "lock" => Self::Lock(Engines::open(url)?),
            "textbook" => Self::Textbook(Textbook::open(url, false)?),
            "slow textbook" => Self::Textbook(Textbook::open(url, true)?),
            "apart" => Self::Apart(pool(url)?),
            _ => bail!("nothing is called {what:?}"),
        })
    }

    pub(crate) async fn call(&self, call: &Call) -> Result<u64, Failed> {
        match self {
            Self::Hold(engines) => functions::hold(engines.of(call), call).await,
            Self::Recover(engines) => functions::recover(engines.of(call), call).await,
            Self::Rerun(engines) => functions::rerun(engines.of(call), call).await,
            Self::Transaction(engines, pool) => {
                let mut tx = pool.begin().await?;
                let value = functions::transfer(engines.of(call), &mut tx, call).await?;
                call.note(What::Committing);
                tx.commit().await?;
                Ok(value)
            }
            Self::Lock(engines) => locks::write(&engines.told, call).await,
            Self::Textbook(textbook) => textbook.call(call).await,
            Self::Apart(pool) => apart::pay(pool, call).await,
        }
    }

    /// What a caller and a body do.
    pub(crate) fn plan(&self, dice: &mut Rng) -> Plan {
        match self {
            Self::Textbook(_) | Self::Apart(_) => Plan::draw_tame(dice),
            // Long enough for some to be caught in the middle.
            Self::Lock(_) => Plan::draw(dice, 100),
            _ => Plan::draw(dice, 12),
        }
    }

    /// Whether an answer can be that the outcome is unknown.
    pub(crate) fn may_hold(&self) -> bool {
        matches!(self, Self::Hold(_))
    }

    /// Waits until what calls left behind is settled. Nothing outlives them that would have to be
    /// stopped.
    pub(crate) async fn drain(&self) -> Result<()> {
        const LONG: Duration = Duration::from_secs(30);
        let stopped = match self {
            Self::Hold(engines)
            | Self::Recover(engines)
            | Self::Rerun(engines)
            | Self::Transaction(engines, _)
            | Self::Lock(engines) => {
                engines.told.drain(LONG).await + engines.waiting.drain(LONG).await
            }
            Self::Textbook(_) | Self::Apart(_) => 0,
        };
        ensure!(stopped == 0, "{stopped} attempts outlived their calls");
        Ok(())
    }
}

impl Engines {
    fn open(url: &str) -> Result<Self> {
        if url.starts_with("postgres:") {
            return Self::on(&PostgresStore::new(pool(url)?));
        }
        let builder = match url.split_once(':') {
            Some(("cluster", nodes)) => RedisBuilder::cluster(nodes.split(',')),
            Some(("sentinel", watchers)) => RedisBuilder::sentinel(MASTER, watchers.split(',')),
            _ => RedisBuilder::server(url),
        };
        let store: RedisStore = builder.limit(LIMIT).build()?;
        Self::on(&store)
    }

    fn on(store: &(impl Store + Clone)) -> Result<Self> {
        let policy = Policy::new().lease(LEASE).wait(WAIT);
        let engine = |policy| {
            Idempotency::builder(store.clone())
                .limit(LIMIT)
                .defaults(policy)
                .build()
        };
        Ok(Self {
            told: engine(policy)?,
            waiting: engine(policy.wait_in_progress())?,
        })
    }

    fn of(&self, call: &Call) -> &Idempotency {
        if call.plan.waits {
            &self.waiting
        } else {
            &self.told
        }
    }
}

fn pool(url: &str) -> Result<PgPool> {
    let options = PgConnectOptions::from_str(url)?;
    let pool = PgPoolOptions::new().max_connections(6);
    Ok(pool.acquire_timeout(WAIT).connect_lazy_with(options))
}
