//! Rounds: in each, every side does the same work, in another order than in the round before. So a
//! machine that is busy for a while is busy for all of them.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use idem_tests::redis::RedisServer;
use rustix::time::{ClockId, clock_gettime};

use crate::order::{Order, paid};
use crate::sides::{Name, Side};

/// So many calls by so many tasks, each one call after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) tasks: u64,
    pub(crate) calls: u64,
}

impl Load {
    #[expect(clippy::cast_precision_loss, reason = "a number of calls is small")]
    pub(crate) fn calls_as_number(self) -> f64 {
        self.calls as f64
    }
}

/// What one call took in one round, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    pub(crate) wall: f64,
    /// Processor time of this process, and of the server: what a busy machine does not blur.
    pub(crate) client: f64,
    pub(crate) server: f64,
}

/// Round by round.
#[derive(Debug, Default)]
pub(crate) struct Times {
    pub(crate) first: Vec<Took>,
    pub(crate) duplicate: Vec<Took>,
}

/// A call of which many are made.
pub(crate) trait Call: Send + Sync + 'static {
    /// Number by number, each once unless it is meant to be a duplicate.
    fn call(&self, number: u64) -> impl Future<Output = Result<()>> + Send;
}

impl<S: Side> Call for S {
    async fn call(&self, number: u64) -> Result<()> {
        self.pay(Order::numbered(number)).await
    }
}

pub(crate) type Batch = Pin<Box<dyn Future<Output = Result<Duration>>>>;

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

/// The time for the calls from `from` on.
pub(crate) async fn batch<C: Call>(side: Arc<C>, load: Load, from: u64) -> Result<Duration> {
    let share = load.calls / load.tasks;
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for task in 0..load.tasks {
        let side = Arc::clone(&side);
        let from = from + task * share;
        tasks.push(tokio::spawn(async move {
            for number in from..from + share {
                side.call(number).await?;
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(begin.elapsed())
}

/// Measures all sides under `load`. The first round warms up and is not counted.
pub(crate) async fn measure(
    server: &RedisServer,
    sides: &[Contestant],
    load: Load,
    rounds: usize,
) -> Result<Vec<Times>> {
    let mut times: Vec<_> = sides.iter().map(|_| Times::default()).collect();
    for round in 0..=rounds {
        server.cli(&["FLUSHALL"])?;
        for turn in 0..sides.len() {
            let at = (round + turn) % sides.len();
            let (first, duplicate) = both(server, &sides[at], load).await?;
            if round > 0 {
                times[at].first.push(first);
                times[at].duplicate.push(duplicate);
            }
        }
    }
    Ok(times)
}

/// First calls, then as many duplicates of them.
async fn both(server: &RedisServer, side: &Contestant, load: Load) -> Result<(Took, Took)> {
    let before = paid();
    let first = timed(server, side, load).await?;
    let after_first = paid();
    let duplicate = timed(server, side, load).await?;
    let runs = (after_first - before, paid() - after_first);
    // The raw loop has no body.
    ensure!(
        side.name == Name::Raw || runs == (load.calls, 0),
        "{} ran its body {runs:?} times for {} calls and as many duplicates",
        side.name,
        load.calls
    );
    Ok((first, duplicate))
}

async fn timed(server: &RedisServer, side: &Contestant, load: Load) -> Result<Took> {
    let calls = load.calls_as_number();
    let (server_before, before) = (server_time(server)?, own_time());
    let wall = side.run(load, 0).await?;
    let (after, server_after) = (own_time(), server_time(server)?);
    Ok(Took {
        wall: wall.as_secs_f64() / calls,
        client: (after - before) / calls,
        server: (server_after - server_before) / calls,
    })
}

/// The processor time of this process, in seconds.
#[expect(clippy::cast_precision_loss, reason = "µs are exact enough")]
pub(crate) fn own_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The processor time of the server, in seconds.
pub(crate) fn server_time(server: &RedisServer) -> Result<f64> {
    let user: f64 = server.info("used_cpu_user")?.trim().parse()?;
    let system: f64 = server.info("used_cpu_sys")?.trim().parse()?;
    Ok(user + system)
}
