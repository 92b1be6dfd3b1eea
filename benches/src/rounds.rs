//! Rounds: in each, every side does the same work, in another order than in the round before. So a
//! machine that is busy for a while is busy for all of them.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::order::{Order, paid};
use crate::sides::{Name, Side};

/// So many calls by so many tasks, each one call after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) tasks: u64,
    pub(crate) calls: u64,
}

/// The seconds per call, round by round.
#[derive(Debug, Default)]
pub(crate) struct Times {
    pub(crate) first: Vec<f64>,
    pub(crate) duplicate: Vec<f64>,
}

type Batch = Pin<Box<dyn Future<Output = Result<Duration>>>>;

/// A side that is ready to be measured.
pub(crate) struct Contestant {
    pub(crate) name: Name,
    run: Box<dyn Fn(Load, u64) -> Batch>,
}

impl Contestant {
    pub(crate) async fn connect<S: Side>(name: Name, url: &str) -> Result<Self> {
        let side = Arc::new(S::connect(url).await?);
        let run = move |load, from| -> Batch { Box::pin(batch(Arc::clone(&side), load, from)) };
        Ok(Self {
            name,
            run: Box::new(run),
        })
    }

    /// The time for the orders from `from` on.
    pub(crate) async fn run(&self, load: Load, from: u64) -> Result<Duration> {
        (self.run)(load, from).await
    }
}

async fn batch<S: Side>(side: Arc<S>, load: Load, from: u64) -> Result<Duration> {
    let share = load.calls / load.tasks;
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for task in 0..load.tasks {
        let side = Arc::clone(&side);
        let from = from + task * share;
        tasks.push(tokio::spawn(async move {
            for number in from..from + share {
                side.pay(Order::numbered(number)).await?;
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(begin.elapsed())
}

/// Measures all sides under `load`; `empty` empties the server between two rounds. The first
/// round warms up and is not counted.
pub(crate) async fn measure(
    sides: &[Contestant],
    load: Load,
    rounds: usize,
    empty: impl Fn() -> Result<()>,
) -> Result<Vec<Times>> {
    let mut times: Vec<_> = sides.iter().map(|_| Times::default()).collect();
    for round in 0..=rounds {
        empty()?;
        for turn in 0..sides.len() {
            let at = (round + turn) % sides.len();
            let (first, duplicate) = both(&sides[at], load).await?;
            if round > 0 {
                times[at].first.push(first);
                times[at].duplicate.push(duplicate);
            }
        }
    }
    Ok(times)
}

/// First calls, then as many duplicates of them.
async fn both(side: &Contestant, load: Load) -> Result<(f64, f64)> {
    let before = paid();
    let first = side.run(load, 0).await?;
    let after_first = paid();
    let duplicate = side.run(load, 0).await?;
    let runs = (after_first - before, paid() - after_first);
    // The raw loop has no body.
    ensure!(
        side.name == Name::Raw || runs == (load.calls, 0),
        "{} ran its body {runs:?} times for {} calls and as many duplicates",
        side.name,
        load.calls
    );
    Ok((per_call(first, load), per_call(duplicate, load)))
}

fn per_call(time: Duration, load: Load) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a number of calls is small")]
    let calls = load.calls as f64;
    time.as_secs_f64() / calls
}
