//! Rows beside a baseline: the same work with the guard and without it, in interleaved rounds.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::rounds::{Batch, Call, Load, Took, batch, own_time};
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

/// Where the work is done: what has to be so before each turn, and the processor time of the server
/// so far, in seconds.
pub(crate) trait Place {
    fn fresh(&self) -> impl Future<Output = Result<()>>;

    fn server_time(&self) -> Result<f64>;
}

/// Measures `rows` under `load`, each after a fresh start, and prints a table. A row may have the
/// least share of the baseline's rate that is good enough. The first round warms up and is not
/// counted.
pub(crate) async fn measure(
    rows: &[(&Row, Option<f64>)],
    load: Load,
    rounds: usize,
    place: &impl Place,
) -> Result<()> {
    let mut times: Vec<Vec<Took>> = vec![Vec::new(); rows.len()];
    for round in 0..=rounds {
        for turn in 0..rows.len() {
            let at = (round + turn) % rows.len();
            place.fresh().await?;
            let took = timed(rows[at].0, load, place).await?;
            if round > 0 {
                times[at].push(took);
            }
        }
    }
    print(rows, &times);
    Ok(())
}

async fn timed(row: &Row, load: Load, place: &impl Place) -> Result<Took> {
    let calls = load.calls_as_number();
    let (server_before, before) = (place.server_time()?, own_time());
    let wall = row.run(load, 0).await?;
    let (after, server_after) = (own_time(), place.server_time()?);
    Ok(Took {
        wall: wall.as_secs_f64() / calls,
        client: (after - before) / calls,
        server: (server_after - server_before) / calls,
    })
}

/// A ratio is the median of the rounds' ratios; beside it the least and the greatest of them.
fn print(rows: &[(&Row, Option<f64>)], times: &[Vec<Took>]) {
    println!(
        "| | µs per call | calls per s | rate × bare | least – most | target | client | server |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for ((row, target), own) in rows.iter().zip(times) {
        let ratios: Vec<_> = times[0]
            .iter()
            .zip(own)
            .map(|(bare, own)| bare.wall / own.wall)
            .collect();
        let ratio = median(ratios.iter().copied());
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let micros = |of: fn(&Took) -> f64| median(own.iter().map(of)) * 1e6;
        let each = micros(|took| took.wall);
        let missed = if target.is_some_and(|target| ratio < target) {
            " (missed)"
        } else {
            ""
        };
        println!(
            "| {} | {each:.0} | {:.0} | {ratio:.2}{missed} | {least:.2} – {most:.2} | {} | {:.0} | {:.0} |",
            row.name,
            1e6 / each,
            target.map_or(String::new(), |target| format!("≥ {target:.2}")),
            micros(|took| took.client),
            micros(|took| took.server),
        );
    }
    println!();
}
