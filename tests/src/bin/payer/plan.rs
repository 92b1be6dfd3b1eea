//! What a body does, as the test wrote it.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::watch;

static GATES: LazyLock<watch::Sender<HashSet<String>>> =
    LazyLock::new(|| watch::Sender::new(HashSet::new()));

/// One step of a body.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `say:WORD`: says `at WORD`.
    Say(String),
    /// `park:GATE`: waits until the gate is opened.
    Park(String),
    /// `sleep:MILLIS`.
    Sleep(Duration),
    /// `effect`: the deed that must not be done twice.
    Effect,
    /// `checkpoint`: passes it, or leaves with what it says.
    Checkpoint,
    /// `fail`: the body's own error.
    Fail,
    /// `die`: kill -9, by itself.
    Die,
    /// `done`, `not_done`, `unknown`: what a recovery found out.
    Verdict(Verdict),
}

/// See [`idem_core::Recovered`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    Done,
    NotDone,
    Unknown,
}

/// Reads steps parted by commas; `-` and the empty text are none.
pub(crate) fn read(text: &str) -> Result<Vec<Step>> {
    let steps = text.split(',').filter(|step| !["", "-"].contains(step));
    steps.map(step).collect()
}

fn step(text: &str) -> Result<Step> {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    Ok(match name {
        "say" => Step::Say(value.to_owned()),
        "park" => Step::Park(value.to_owned()),
        "sleep" => Step::Sleep(Duration::from_millis(value.parse()?)),
        "effect" => Step::Effect,
        "checkpoint" => Step::Checkpoint,
        "fail" => Step::Fail,
        "die" => Step::Die,
        "done" => Step::Verdict(Verdict::Done),
        "not_done" => Step::Verdict(Verdict::NotDone),
        "unknown" => Step::Verdict(Verdict::Unknown),
        _ => bail!("no step is called {name:?}"),
    })
}

/// Opens a gate for good.
pub(crate) fn open(gate: &str) {
    GATES.send_modify(|open| {
        open.insert(gate.to_owned());
    });
}

pub(crate) async fn park(gate: &str) -> Result<()> {
    let mut gates = GATES.subscribe();
    let opened = gates.wait_for(|open| open.contains(gate)).await;
    opened.map(drop).context("the gates are gone")
}

pub(crate) fn die() -> Result<()> {
    Ok(kill_process(getpid(), Signal::KILL)?)
}
