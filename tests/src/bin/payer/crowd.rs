//! Many calls at once, told as one answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::task::JoinSet;

use crate::functions::Request;
use crate::outcome;

/// How many tasks make how many calls.
pub(crate) struct Crowd {
    tasks: usize,
    /// Of different orders; none if every task makes one call, of the same order.
    calls: Option<usize>,
    begin: SystemTime,
}

#[derive(Default)]
struct Tally {
    outcomes: BTreeMap<String, usize>,
    receipts: BTreeSet<String>,
    times: Vec<Duration>,
}

impl Crowd {
    /// One call a task, all of one order, beginning at a moment in microseconds since the epoch.
    pub(crate) fn at(micros: u64, tasks: usize) -> Self {
        Self {
            tasks,
            calls: None,
            begin: SystemTime::UNIX_EPOCH + Duration::from_micros(micros),
        }
    }

    /// `calls` orders, of which `tasks` are under way at a time.
    pub(crate) fn over(calls: usize, tasks: usize) -> Self {
        Self {
            tasks,
            calls: Some(calls),
            begin: SystemTime::now(),
        }
    }

    /// Makes the calls and says what came of them: outcomes by number, how many different
    /// receipts there were, the 99th percentile and the longest time in microseconds.
    pub(crate) async fn call(self, id: String, function: String, request: Request) {
        let crowd = Arc::new((self, AtomicUsize::new(0), function, request));
        let mut tasks = JoinSet::new();
        for _ in 0..crowd.0.tasks {
            let crowd = Arc::clone(&crowd);
            tasks.spawn(async move { one(&crowd.0, &crowd.1, &crowd.2, &crowd.3).await });
        }
        let mut whole = Tally::default();
        for tally in tasks.join_all().await {
            whole.add(tally);
        }
        println!("{id} {}", whole.show());
    }

    async fn begun(&self) {
        let left = self.begin.duration_since(SystemTime::now());
        tokio::time::sleep(left.unwrap_or_default()).await;
    }
}

async fn one(crowd: &Crowd, next: &AtomicUsize, function: &str, request: &Request) -> Tally {
    let mut tally = Tally::default();
    crowd.begun().await;
    let Some(calls) = crowd.calls else {
        tally.call(function, request.clone()).await;
        return tally;
    };
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= calls {
            return tally;
        }
        let mut request = request.clone();
        request.order_no = format!("{}-{number}", request.order_no);
        tally.call(function, request).await;
    }
}

impl Tally {
    async fn call(&mut self, function: &str, request: Request) {
        let begin = Instant::now();
        let (outcome, detail) = outcome(function, request).await;
        self.times.push(begin.elapsed());
        if outcome == "refused" {
            *self.outcomes.entry(detail).or_default() += 1;
        } else {
            *self.outcomes.entry(outcome.to_owned()).or_default() += 1;
            self.receipts.insert(detail);
        }
    }

    fn add(&mut self, other: Self) {
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        self.receipts.extend(other.receipts);
        self.times.extend(other.times);
    }

    fn show(mut self) -> String {
        self.times.sort_unstable();
        let part = |part: usize| self.times.get(self.times.len() * part / 100);
        let p99 = part(99).map_or(0, Duration::as_micros);
        let worst = self.times.last().map_or(0, Duration::as_micros);
        let outcomes: Vec<_> = self
            .outcomes
            .iter()
            .map(|(outcome, count)| format!("{outcome}={count}"))
            .collect();
        let receipts: Vec<_> = self.receipts.iter().take(4).map(String::as_str).collect();
        let count = self.receipts.len();
        format!(
            "{} receipts={count} receipt={} p99={p99} worst={worst}",
            outcomes.join(" "),
            receipts.join("/")
        )
    }
}
