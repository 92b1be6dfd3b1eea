//! The guarded functions: one for each way to treat an attempt that died, and a few more.
//!
//! What a function does not say, its lease for instance, is the engine's.

use idem_core::{Attempt, Error, Recovered, idempotent};
use serde::{Deserialize, Serialize};

use crate::ledger;
use crate::plan::{self, Step, Verdict};

/// A request: whose business it is, what the body does, and what a recovery finds out.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) order_no: String,
    plan: Vec<Step>,
    recovery: Vec<Step>,
}

impl Request {
    pub(crate) fn new(order_no: &str, plan: &str, recovery: &str) -> anyhow::Result<Self> {
        Ok(Self {
            order_no: order_no.to_owned(),
            plan: plan::read(plan)?,
            recovery: plan::read(recovery)?,
        })
    }
}

/// The result: the fence of the run that made it, 1 without a guard, 2 from a recovery.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) number: u64,
}

const UNGUARDED: Receipt = Receipt { number: 1 };
const RECOVERED: Receipt = Receipt { number: 2 };

#[derive(Debug)]
pub(crate) enum PayError {
    /// The body's own.
    Declined,
    Guard(Error),
}

impl From<Error> for PayError {
    fn from(error: Error) -> Self {
        Self::Guard(error)
    }
}

macro_rules! functions {
    ($($(#[$options:meta])* $name:ident($request:ident): $prefix:literal;)*) => {
        /// Calls the function whose prefix is `function`.
        pub(crate) async fn call(function: &str, request: Request) -> Result<Receipt, PayError> {
            match function {
                $($prefix => $name(request).await,)*
                _ => Err(PayError::Declined),
            }
        }

        $($(#[$options])*
        async fn $name($request: Request) -> Result<Receipt, PayError> {
            perform($prefix, &$request).await
        })*
    };
}

functions! {
    #[idempotent(prefix = "hold", key = request.order_no, expire = 600)]
    hold(request): "hold";
    #[idempotent(prefix = "hold:marked", key = request.order_no, expire = 600, checkpoint = true)]
    hold_marked(request): "hold:marked";
    #[idempotent(prefix = "hold:recover", key = request.order_no, expire = 600, recover = look_up)]
    hold_recover(request): "hold:recover";
    #[idempotent(
        prefix = "hold:marked:recover", key = request.order_no, expire = 600, checkpoint = true,
        recover = look_up
    )]
    hold_marked_recover(request): "hold:marked:recover";
    #[idempotent(prefix = "rerun", key = request.order_no, expire = 600, on_abandoned = "rerun")]
    rerun(request): "rerun";
    #[idempotent(
        prefix = "rerun:marked", key = request.order_no, expire = 600, on_abandoned = "rerun",
        checkpoint = true
    )]
    rerun_marked(request): "rerun:marked";
    #[idempotent(
        prefix = "rerun:recover", key = request.order_no, expire = 600, on_abandoned = "rerun",
        recover = look_up
    )]
    rerun_recover(request): "rerun:recover";
    #[idempotent(
        prefix = "rerun:marked:recover", key = request.order_no, expire = 600,
        on_abandoned = "rerun", checkpoint = true, recover = look_up
    )]
    rerun_marked_recover(request): "rerun:marked:recover";
    #[idempotent(
        prefix = "wait", key = request.order_no, expire = 600, in_progress = "wait", wait = "30s"
    )]
    wait(request): "wait";
    #[idempotent(
        prefix = "wait:rerun", key = request.order_no, expire = 600, in_progress = "wait",
        wait = "30s", on_abandoned = "rerun"
    )]
    wait_rerun(request): "wait:rerun";
    #[idempotent(
        prefix = "wait:short", key = request.order_no, expire = 600, in_progress = "wait",
        wait = "2s"
    )]
    wait_short(request): "wait:short";
    #[idempotent(prefix = "unguarded", key = request.order_no, expire = 600, on_store_error = "run")]
    unguarded(request): "unguarded";
    #[idempotent(prefix = "brief", key = request.order_no, expire = 2)]
    brief(request): "brief";
    #[idempotent(prefix = "day", key = request.order_no, expire = 86400, checkpoint = true)]
    day(request): "day";
}

async fn perform(prefix: &str, request: &Request) -> Result<Receipt, PayError> {
    note("run", prefix, request)?;
    for step in &request.plan {
        take(step, prefix, request).await?;
    }
    let attempt = Attempt::current();
    Ok(attempt.map_or(UNGUARDED, |attempt| Receipt {
        number: attempt.fence().as_u64(),
    }))
}

async fn look_up(request: &Request) -> Result<Recovered<Receipt>, PayError> {
    note("asked", "recovery", request)?;
    for step in &request.recovery {
        match step {
            Step::Verdict(Verdict::Done) => return Ok(Recovered::Done(RECOVERED)),
            Step::Verdict(Verdict::NotDone) => return Ok(Recovered::NotDone),
            Step::Verdict(Verdict::Unknown) => return Ok(Recovered::Unknown),
            step => take(step, "recovery", request).await?,
        }
    }
    Err(PayError::Declined)
}

async fn take(step: &Step, prefix: &str, request: &Request) -> Result<(), PayError> {
    match step {
        Step::Say(word) => println!("at {word}"),
        Step::Park(gate) => plan::park(gate).await.map_err(|_| PayError::Declined)?,
        Step::Sleep(time) => tokio::time::sleep(*time).await,
        Step::Effect => note("effect", prefix, request)?,
        Step::Checkpoint => {
            if let Some(attempt) = Attempt::current() {
                attempt.checkpoint().await?;
            }
        }
        Step::Fail | Step::Verdict(_) => return Err(PayError::Declined),
        Step::Die => plan::die().map_err(|_| PayError::Declined)?,
    }
    Ok(())
}

/// A deed that cannot be written down must not be done.
fn note(deed: &str, prefix: &str, request: &Request) -> Result<(), PayError> {
    ledger::note(deed, prefix, &request.order_no).map_err(|_| PayError::Declined)
}
