//! Set-ups in which records can vanish or answers can lie.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ::redis::{InfoDict, RedisResult};

use super::RedisStore;
use super::link::Link;
use super::nodes::{Node, ask, masters, read};
use crate::error::StoreError;
use crate::store::Finding;

/// Clocks of two nodes may differ by a tenth of the shortest lease, which is a second.
const LARGEST_SKEW: Duration = Duration::from_millis(100);

impl RedisStore {
    pub(super) async fn findings(&self) -> Result<Vec<Finding>, StoreError> {
        let link = self.link().await?;
        let masters = masters(&link).await;
        let nodes = match masters.map_err(|error| self.failed(&link, error))? {
            Some(masters) => masters.into_iter().map(Some).collect(),
            None => vec![None],
        };
        let mut findings = Vec::new();
        let mut clocks = Vec::new();
        for node in &nodes {
            let facts = facts(&link, node.as_ref()).await;
            let facts = facts.map_err(|error| self.failed(&link, error))?;
            let place = match node {
                Some((host, port)) => format!("{host}:{port}"),
                None => "the server".to_owned(),
            };
            findings.extend(judge(&facts, &place));
            clocks.push((place, facts.clock));
        }
        findings.extend(skew(&clocks));
        Ok(findings)
    }
}

/// What a node says of itself.
struct Facts {
    info: InfoDict,
    config: HashMap<String, String>,
    clock: Clock,
}

/// A node's time, and when it can have been read by this process's clock.
#[derive(Clone, Copy)]
struct Clock {
    asked: Instant,
    answered: Instant,
    time: Duration,
}

async fn facts(link: &Link, node: Option<&Node>) -> RedisResult<Facts> {
    let asked = Instant::now();
    let time = ask(link, node, ::redis::cmd("TIME")).await?;
    let answered = Instant::now();
    let (seconds, micros): (u64, u64) = read(time)?;
    let info = ask(link, node, ::redis::cmd("INFO")).await?;
    let mut config = HashMap::new();
    // One by one: before Redis 7 nobody may ask for several.
    for name in ["save", "appendfsync"] {
        let mut get = ::redis::cmd("CONFIG");
        get.arg("GET").arg(name);
        // Many hosted servers let nobody ask; what INFO says is judged all the same.
        if let Ok(answer) = ask(link, node, get).await {
            config.extend(read::<HashMap<String, String>>(answer)?);
        }
    }
    Ok(Facts {
        info: read(info)?,
        config,
        clock: Clock {
            asked,
            answered,
            time: Duration::from_secs(seconds) + Duration::from_micros(micros),
        },
    })
}

fn judge(facts: &Facts, place: &str) -> Vec<Finding> {
    [
        eviction(facts, place),
        persistence(facts, place),
        replicas(facts, place),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn eviction(facts: &Facts, place: &str) -> Option<Finding> {
    let policy: String = facts.info.get("maxmemory_policy")?;
    (policy != "noeviction").then(|| Finding {
        code: "eviction_policy",
        detail: format!(
            "{place} has maxmemory-policy {policy}: under memory pressure it drops records, and what they guarded runs again; set it to noeviction"
        ),
    })
}

fn persistence(facts: &Facts, place: &str) -> Option<Finding> {
    let is_appending = facts.info.get::<String>("aof_enabled").as_deref() == Some("1");
    if is_appending {
        return fsync(facts, place);
    }
    let snapshots = facts.config.get("save");
    let detail = match snapshots.map(String::as_str) {
        Some("") => format!(
            "{place} keeps nothing on disk: a restart loses all records, and what they guarded runs again; set appendonly yes"
        ),
        Some(times) => format!(
            "{place} only writes snapshots (save {times}): a crash loses the records since the last one; set appendonly yes"
        ),
        None => format!(
            "{place} has no append-only file, and does not say whether it writes snapshots: a crash loses records; set appendonly yes"
        ),
    };
    Some(Finding {
        code: "no_persistence",
        detail,
    })
}

fn fsync(facts: &Facts, place: &str) -> Option<Finding> {
    let when = facts.config.get("appendfsync")?;
    (when == "no").then(|| Finding {
        code: "no_fsync",
        detail: format!(
            "{place} leaves it to its kernel when the append-only file reaches the disk (appendfsync no): where power is lost, so are the records of half a minute or more, and what they guarded runs again; set appendfsync everysec"
        ),
    })
}

fn replicas(facts: &Facts, place: &str) -> Option<Finding> {
    let count: u32 = facts.info.get("connected_slaves")?;
    (count > 0).then(|| Finding {
        code: "asynchronous_replicas",
        detail: format!(
            "{place} has {count} replicas that get records a little later: a fail-over can lose the last ones, and what they guarded runs again; guard what must not with a transaction"
        ),
    })
}

/// The largest difference between two nodes' clocks that is not explained by the time on the wire.
fn skew(clocks: &[(String, Clock)]) -> Option<Finding> {
    let (first_place, first) = clocks.first()?;
    let worst = clocks
        .iter()
        .map(|(place, clock)| (first.differs_at_least_by(clock), place))
        .max()?;
    let (skew, place) = worst;
    (skew > LARGEST_SKEW).then(|| Finding {
        code: "clock_skew",
        detail: format!(
            "the clocks of {first_place} and {place} differ by {skew:?}: claims are refused as late, or a lease ends early; keep the nodes' clocks in step (NTP)"
        ),
    })
}

impl Clock {
    fn differs_at_least_by(&self, later: &Self) -> Duration {
        let shortest = later.asked.saturating_duration_since(self.answered);
        let longest = later.answered.saturating_duration_since(self.asked);
        let ahead = later.time.saturating_sub(self.time + longest);
        let behind = (self.time + shortest).saturating_sub(later.time);
        ahead.max(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(begin: Instant, asked: u64, answered: u64, time: u64) -> Clock {
        Clock {
            asked: begin + Duration::from_millis(asked),
            answered: begin + Duration::from_millis(answered),
            time: Duration::from_millis(time),
        }
    }

    #[test]
    fn time_on_the_wire_is_no_skew() {
        let begin = Instant::now();
        let first = clock(begin, 0, 300, 10_000);
        let second = clock(begin, 300, 600, 10_550);
        assert_eq!(first.differs_at_least_by(&second), Duration::ZERO);
        assert!(skew(&[("a".into(), first), ("b".into(), second)]).is_none());
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_is_found() {
        let begin = Instant::now();
        let first = clock(begin, 0, 1, 10_000);
        for (time, least) in [(10_700, 698), (9_300, 700)] {
            let second = clock(begin, 1, 2, time);
            let skewed = first.differs_at_least_by(&second);
            assert_eq!(skewed, Duration::from_millis(least));
            let finding = skew(&[("a".into(), first), ("b".into(), second)]);
            assert_eq!(finding.map(|finding| finding.code), Some("clock_skew"));
        }
    }
}
