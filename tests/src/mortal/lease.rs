//! The guarded functions in lease mode.

use std::fmt;
use std::fs::{self, File};
use std::future::{Future, Ready, ready};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use idem_core::store::Store;
use idem_core::{Attempt, Idempotency, Key, Policy, Recovered, idempotent};
use sqlx::Pool;

use super::base::Base;
use super::transaction::commit;
use super::{Point, trap};
use crate::faulty::{Fault, Faulty, Verb};

/// The shortest lease that is allowed: the next caller waits for its end.
pub const LEASE: Duration = Duration::from_secs(1);

/// The prefix of the keys that are locked.
pub const LOCKS: &str = "mortal:lock";

/// How an attempt treats its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mode {
    /// `on_abandoned = "rerun"`, otherwise hold.
    pub rerun: bool,
    /// What the body does.
    pub body: Body,
}

/// What a body does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// An effect; the claim is the checkpoint.
    Plain,
    /// Its own checkpoint, and an effect.
    Marked,
    /// An effect and `settle_in`, in a transaction of its own.
    SettlesIn,
    /// As plain; a takeover in doubt looks whether the effect has happened.
    Recovers,
    /// As plain, in a task of its own.
    Detached,
    /// None: a lock is held for as long.
    Locks,
}

impl Mode {
    /// As it is told to another process.
    #[must_use]
    pub fn name(self) -> String {
        let policy = if self.rerun { "rerun" } else { "hold" };
        let body = match self.body {
            Body::Plain => "",
            Body::Marked => ", own checkpoint",
            Body::SettlesIn => ", settle_in",
            Body::Recovers => ", recover",
            Body::Detached => ", detach",
            Body::Locks => ", lock",
        };
        format!("{policy}{body}")
    }

    /// The mode of this name.
    pub fn named(name: &str) -> Result<Self> {
        let (policy, body) = name.split_once(", ").unwrap_or((name, ""));
        let body = match body {
            "" => Body::Plain,
            "own checkpoint" => Body::Marked,
            "settle_in" => Body::SettlesIn,
            "recover" => Body::Recovers,
            "detach" => Body::Detached,
            "lock" => Body::Locks,
            _ => bail!("no body is called {body:?}"),
        };
        Ok(Self {
            rerun: policy == "rerun",
            body,
        })
    }

    fn policy(self) -> Policy {
        let policy = Policy::new().lease(LEASE);
        let policy = match self.body {
            Body::Marked => policy.own_checkpoint(),
            _ => policy,
        };
        if self.rerun {
            policy.rerun_abandoned()
        } else {
            policy.hold_abandoned()
        }
    }
}

/// An engine on a store after whose calls the process can die.
#[derive(Clone)]
pub struct Engine {
    idem: Idempotency,
    /// The process dies when the store has done a call of this verb, be it a resend.
    deadly: Arc<dyn Fn(Verb) + Send + Sync>,
}

impl Engine {
    /// An engine on `store`.
    pub fn new(store: impl Store) -> Result<Self> {
        let store = Faulty::new(store);
        let idem = Idempotency::builder(store.clone()).build()?;
        let deadly = move |verb| store.always(verb, Fault::die_unheard());
        Ok(Self {
            idem,
            deadly: Arc::new(deadly),
        })
    }

    /// The engine itself.
    #[must_use]
    pub fn idem(&self) -> &Idempotency {
        &self.idem
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Where its record is.
    pub engine: &'a Engine,
    /// How it treats its record.
    pub mode: Mode,
    /// Whose effect it has: a line of its own in the ledger, or a row.
    pub number: i64,
}

impl Call<'_> {
    /// A call with an effect outside all stores.
    pub async fn with_a_ledger(&self, ledger: &Path) -> Result<u32> {
        match self.mode.body {
            Body::Recovers => self.around(recovered(*self, ledger)).await,
            Body::Detached => {
                let (engine, ledger) = (self.engine.clone(), ledger.to_owned());
                let call = detached(engine, self.mode, self.number, ledger);
                self.around(call).await
            }
            Body::Locks => self.around(self.hold()).await,
            _ => self.run(async || self.note(ledger).await).await,
        }
    }

    async fn hold(&self) -> Result<u32> {
        let key = Key::new(LOCKS, self.number)?;
        let lock = self.engine.idem.lock(key).lease(LEASE).acquire().await?;
        let who = self.body(async || Ok(())).await?;
        lock.release().await?;
        Ok(who)
    }

    async fn note(&self, ledger: &Path) -> Result<()> {
        self.checkpoint().await?;
        note(ledger, self.number)?;
        trap::at(Point::Effect);
        Ok(())
    }

    /// A call whose effect commits together with its success.
    pub async fn with_a_database<D: Base>(&self, pool: &Pool<D>) -> Result<u32> {
        self.run(async || {
            let mut tx = D::begin(pool).await?;
            D::add(&mut tx, self.number).await?;
            trap::at(Point::Effect);
            let attempt = Attempt::current().context("no attempt")?;
            trap::count_sends(Point::RecordSent);
            attempt.settle_in(&mut tx, &process::id()).await?;
            trap::all_sent(Point::RecordSent);
            trap::at(Point::Written);
            commit(tx).await?;
            trap::at(Point::Committed);
            Ok(())
        })
        .await
    }

    async fn run(&self, effect: impl AsyncFnOnce() -> Result<()>) -> Result<u32> {
        let key = Key::new("mortal:lease", self.number)?;
        let body = || self.body(effect);
        let run = self.engine.idem.run(key, self.mode.policy(), body);
        self.around(run).await
    }

    /// What the caller does around a guarded call.
    async fn around(&self, call: impl Future<Output = Result<u32>>) -> Result<u32> {
        trap::count_sends(Point::ClaimSent);
        self.unheard(Point::ClaimDone, Verb::Claim);
        let who = call.await?;
        trap::all_sent(Point::SettleSent);
        trap::at(Point::Settled);
        Ok(who)
    }

    async fn body(&self, effect: impl AsyncFnOnce() -> Result<()>) -> Result<u32> {
        trap::all_sent(Point::ClaimSent);
        trap::at(Point::Claimed);
        effect().await?;
        trap::count_sends(Point::SettleSent);
        self.unheard(Point::SettleDone, Verb::Settle);
        Ok(process::id())
    }

    async fn checkpoint(&self) -> Result<()> {
        if self.mode.body != Body::Marked {
            return Ok(());
        }
        trap::count_sends(Point::CheckpointSent);
        self.unheard(Point::CheckpointDone, Verb::Renew);
        let attempt = Attempt::current().context("no attempt")?;
        attempt.checkpoint().await?;
        trap::all_sent(Point::CheckpointSent);
        trap::at(Point::Passed);
        Ok(())
    }

    fn unheard(&self, point: Point, verb: Verb) {
        if trap::is(point) {
            (self.engine.deadly)(verb);
        }
    }
}

#[idempotent(
    prefix = "mortal:recovered",
    key = call.number,
    engine = call.engine.idem,
    lease = LEASE,
    recover = look(ledger, call.number)
)]
async fn recovered(call: Call<'_>, ledger: &Path) -> Result<u32> {
    call.body(async || call.note(ledger).await).await
}

#[idempotent(
    prefix = "mortal:detached",
    key = number,
    engine = engine.idem,
    lease = LEASE,
    detach = true
)]
async fn detached(engine: Engine, mode: Mode, number: i64, ledger: PathBuf) -> Result<u32> {
    let call = Call {
        engine: &engine,
        mode,
        number,
    };
    call.body(async || call.note(&ledger).await).await
}

/// Whether the effect of a number has happened. Whoever could have it is dead.
fn look(ledger: &Path, number: i64) -> Ready<Result<Recovered<u32>>> {
    let found = |effects| match effects {
        0 => Recovered::NotDone,
        _ => Recovered::Done(0),
    };
    ready(effects(ledger, number).map(found))
}

/// How often the effect of a number has happened.
pub fn effects(ledger: &Path, number: i64) -> Result<usize> {
    if !ledger.exists() {
        return Ok(0);
    }
    let (text, number) = (fs::read_to_string(ledger)?, number.to_string());
    Ok(text.lines().filter(|line| *line == number).count())
}

/// A deed that survives kill -9: one write to the end of a file.
fn note(ledger: &Path, number: i64) -> Result<()> {
    let mut file = File::options().append(true).create(true).open(ledger)?;
    Ok(file.write_all(format!("{number}\n").as_bytes())?)
}
