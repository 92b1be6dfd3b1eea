//! Rows beside a baseline: the same work with the guard and without it, in interleaved rounds.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::rounds::{Batch, Call, Load, batch};
use crate::table::median;

/// One way to do the work. The first of a table is the baseline.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    run: Box<dyn Fn(Load, u64) -> Batch>,
}

impl Row {
    pub(crate) fn new(name: &'static str, call: impl Call) -> Self {
        let call = Arc::new(call);
        Self {
            name,
            run: Box::new(move |load, from| Box::pin(batch(Arc::clone(&call), load, from))),
        }
    }

    /// The time for the calls from `from` on.
    pub(crate) async fn run(&self, load: Load, from: u64) -> Result<Duration> {
        (self.run)(load, from).await
    }
}

/// Measures `rows` under `load`, each after a `fresh` start, and prints a table. A row may have the
/// least share of the baseline's rate that is good enough. The first round warms up and is not
/// counted.
pub(crate) async fn measure(
    rows: &[(&Row, Option<f64>)],
    load: Load,
    rounds: usize,
    fresh: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
    for round in 0..=rounds {
        for turn in 0..rows.len() {
            let at = (round + turn) % rows.len();
            fresh().await?;
            let took = rows[at].0.run(load, 0).await?;
            if round > 0 {
                times[at].push(took.as_secs_f64());
            }
        }
    }
    print(rows, load, &times);
    Ok(())
}

/// A ratio is the median of the rounds' ratios; beside it the least and the greatest of them.
fn print(rows: &[(&Row, Option<f64>)], load: Load, times: &[Vec<f64>]) {
    println!("| | µs per call | calls per s | rate × bare | least – most | target |");
    println!("|---|---:|---:|---:|---:|---:|");
    for ((row, target), own) in rows.iter().zip(times) {
        let ratios: Vec<_> = times[0]
            .iter()
            .zip(own)
            .map(|(bare, own)| bare / own)
            .collect();
        let ratio = median(ratios.iter().copied());
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let each = median(own.iter().copied()) / load.calls_as_number();
        let missed = if target.is_some_and(|target| ratio < target) {
            " (missed)"
        } else {
            ""
        };
        println!(
            "| {} | {:.0} | {:.0} | {ratio:.2}{missed} | {least:.2} – {most:.2} | {} |",
            row.name,
            each * 1e6,
            1.0 / each,
            target.map_or(String::new(), |target| format!("≥ {target:.2}")),
        );
    }
    println!();
}
