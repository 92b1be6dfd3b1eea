//! Instructions and allocations of the client for one call, by running this program under
//! valgrind with few calls and with more: what differs is the calls'.

use std::env;
use std::process::{self, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::order::Order;
use crate::runtime;
use crate::sides::{Cached, Idempotent, Name, Ours, OursWithFingerprint, Raw, Side};
use crate::table::verdict;

const FEW: usize = 200;
const MORE: usize = 1_200;

/// Allocations for a first call and for a duplicate.
const ALLOCATIONS: (f64, f64) = (30.0, 16.0);

#[derive(Debug, Clone, Copy)]
enum Tool {
    /// Counts instructions.
    Callgrind,
    /// Counts allocations.
    Dhat,
}

/// A table of both.
pub(crate) fn counts(url: &str) -> Result<()> {
    println!("### Instructions and allocations of the client, one task\n");
    if Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        println!("not counted: there is no valgrind");
        return Ok(());
    }
    println!("| | instructions, first call | duplicate | allocations, first call | duplicate |");
    println!("|---|---:|---:|---:|---:|");
    for name in Name::ALL {
        let instructions = |kind| per_call(Tool::Callgrind, name, kind, url);
        let allocations = |kind| per_call(Tool::Dhat, name, kind, url);
        let (first, duplicate) = (allocations("first")?, allocations("duplicate")?);
        println!(
            "| {name} | {:.0} | {:.0} | {first:.1}{} | {duplicate:.1}{} |",
            instructions("first")?,
            instructions("duplicate")?,
            verdict(name, first, ALLOCATIONS.0),
            verdict(name, duplicate, ALLOCATIONS.1),
        );
    }
    println!(
        "| target | | | {:.0} | {:.0} |",
        ALLOCATIONS.0, ALLOCATIONS.1
    );
    Ok(())
}

fn per_call(tool: Tool, name: Name, kind: &str, url: &str) -> Result<f64> {
    let (few, more) = (
        count(tool, name, kind, FEW, url)?,
        count(tool, name, kind, MORE, url)?,
    );
    #[expect(clippy::cast_precision_loss, reason = "a count of millions")]
    let each = (more - few) as f64 / (MORE - FEW) as f64;
    // To a tenth: a queue that gets a new block now and then is no allocation of a call.
    Ok((each * 10.0).round() / 10.0)
}

/// What `tool` counts over a whole run.
fn count(tool: Tool, name: Name, kind: &str, calls: usize, url: &str) -> Result<u64> {
    let args: &[&str] = match tool {
        Tool::Callgrind => &["--tool=callgrind", "--callgrind-out-file=/dev/null"],
        Tool::Dhat => &["--tool=dhat", "--dhat-out-file=/dev/null"],
    };
    let output = Command::new("valgrind")
        .args(args)
        .arg(env::current_exe()?)
        .args(["work", name.word(), kind, &calls.to_string(), url])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    let found = said.lines().find_map(|line| match tool {
        Tool::Callgrind => line.split_once("Collected : ")?.1.into(),
        Tool::Dhat => line
            .split_once("Total:")?
            .1
            .split_once(" in ")?
            .1
            .split(' ')
            .next(),
    });
    let number = found.with_context(|| said.to_string())?.replace(',', "");
    Ok(number.trim().parse()?)
}

/// What is counted: so many first calls, or duplicates of one.
pub(crate) fn work(name: &str, kind: &str, calls: usize, url: &str) -> Result<()> {
    let first = u64::from(process::id()) << 32;
    // Made before, and as many in each run, so that they are no part of what differs.
    let orders: Vec<_> = match kind {
        "first" => (first..).take(MORE).map(Order::numbered).collect(),
        "duplicate" => vec![Order::numbered(first); MORE],
        _ => bail!("neither `first` nor `duplicate`: {kind}"),
    };
    let orders = orders.into_iter().take(calls);
    let name = Name::of_word(name)?;
    runtime(1)?.block_on(async {
        match name {
            Name::Raw => pay_all::<Raw>(orders, url).await,
            Name::Ours => pay_all::<Ours>(orders, url).await,
            Name::OursWithFingerprint => pay_all::<OursWithFingerprint>(orders, url).await,
            Name::Idempotent => pay_all::<Idempotent>(orders, url).await,
            Name::Cached => pay_all::<Cached>(orders, url).await,
        }
    })
}

async fn pay_all<S: Side>(orders: impl Iterator<Item = Order>, url: &str) -> Result<()> {
    let side = S::connect(url).await?;
    for order in orders {
        side.pay(order).await?;
    }
    Ok(())
}
