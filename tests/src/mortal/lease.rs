//! The guarded functions in lease mode.

use std::fmt;
use std::fs::{self, File};
use std::future::{Future, Ready, ready};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use idem_core::store::Store;
use idem_core::{Attempt, Idempotency, Key, Recovered, Results, idempotent};
use sqlx::Pool;

use super::base::Base;
use super::failure::{Failed, Failure};
use super::transaction::commit;
use super::{Body, Mode, Point, forms, trap};
use crate::faulty::{Fault, Faulty, Verb};

/// The shortest lease that is allowed: the next caller waits for its end.
pub const LEASE: Duration = Duration::from_secs(1);

/// The prefix of the keys that are locked.
pub const LOCKS: &str = "mortal:lock";

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
            body if body.takes_a_token() => self.with_its_token(ledger).await,
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
        if self.fails() && self.mode.body.fails_undone() {
            return Ok(());
        }
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
        let (policy, results) = (self.mode.policy(), self.results());
        let (idem, body) = (self.engine.idem(), || self.storable(effect));
        let run = Box::pin(idem.run_with(key, policy, results, None, body));
        self.around(async { run.await.map_err(Failure::into_error) })
            .await
    }

    async fn with_its_token(&self, ledger: &Path) -> Result<u32> {
        let token = forms::token(ledger, self.number)?;
        let (policy, results) = (self.mode.policy(), self.results());
        let effect = async || self.note(ledger).await;
        let (tokens, body) = (forms::tokens(self.engine), || self.storable(effect));
        let run = tokens.run_with(&token, forms::SUBJECT, policy, results, None, body);
        let run = Box::pin(run);
        self.around(async { run.await.map_err(Failure::into_error) })
            .await
    }

    /// How a result travels, and an error of the body.
    fn results(&self) -> Results<u32, Failure> {
        let results = Results::stored().replay_errors();
        results.on_error(self.mode.on_error())
    }

    /// What the caller does around a guarded call.
    async fn around(&self, call: impl Future<Output = Result<u32>>) -> Result<u32> {
        trap::count_sends(Point::ClaimSent);
        self.unheard(Point::ClaimDone, Verb::Claim);
        let answer = call.await;
        // A call that was refused did not come to these points.
        let has_ended = match &answer {
            Ok(_) => true,
            Err(error) => error.is::<Failed>(),
        };
        if has_ended {
            trap::all_sent(Point::SettleSent);
            trap::at(Point::Settled);
        }
        answer
    }

    async fn storable(&self, effect: impl AsyncFnOnce() -> Result<()>) -> Result<u32, Failure> {
        self.body(effect).await.map_err(Failure::from)
    }

    async fn body(&self, effect: impl AsyncFnOnce() -> Result<()>) -> Result<u32> {
        trap::all_sent(Point::ClaimSent);
        trap::at(Point::Claimed);
        effect().await?;
        trap::count_sends(Point::SettleSent);
        self.unheard(Point::SettleDone, Verb::Settle);
        let process = process::id();
        if self.fails() {
            return Err(Failed { process }.into());
        }
        Ok(process)
    }

    /// Whether the body fails here: it does so where the process is to die, and not after that.
    fn fails(&self) -> bool {
        self.mode.body.fails() && trap::is_set()
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
