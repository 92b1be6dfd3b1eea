//! Reading all records of a prefix, page by page, with SCAN only.

use std::sync::Arc;

use ::redis::cluster_async::ClusterConnection;
use ::redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use ::redis::{Cmd, FromRedisValue, RedisResult, Value};

use super::argv::Argv;
use super::fault::misconfigured;
use super::link::{Link, Wire};
use super::{RedisStore, peeked, script};
use crate::error::StoreError;
use crate::record::{Slot, StoreTime};
use crate::store::{Answer, Answered, Cursor, Page, Scan};

/// A node's address; empty where there is only one.
type Node = (String, u16);

/// Where to read on: a node, and the place in it that the node named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    node: Option<Node>,
    cursor: u64,
}

impl Place {
    /// `host:port/cursor`, or `/cursor` where there is only one node.
    fn write(&self) -> Cursor {
        let node = match &self.node {
            Some((host, port)) => format!("{host}:{port}"),
            None => String::new(),
        };
        Cursor(format!("{node}/{}", self.cursor))
    }

    fn read(cursor: &Cursor) -> Option<Self> {
        let (node, cursor) = cursor.0.rsplit_once('/')?;
        let node = match node.rsplit_once(':') {
            Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
            None => None,
        };
        Some(Self {
            node,
            cursor: cursor.parse().ok()?,
        })
    }
}

impl RedisStore {
    /// One page. In a cluster the masters are read one after the other, in the order of their
    /// addresses; records of a slot that moves meanwhile may be seen twice or not at all.
    pub(super) async fn page(&self, scan: &Scan) -> Answered<Page> {
        let place = match &scan.cursor {
            None => None,
            Some(cursor) => Some(Place::read(cursor).ok_or_else(|| {
                misconfigured(format!("redis: `{}` is no cursor of this store", cursor.0))
            })?),
        };
        let link = self.link().await?;
        let (keys, next) = match link.wire() {
            Wire::Node(_) => page_of_keys(&link, scan, None, place).await,
            Wire::Cluster(cluster) => self.page_of_cluster(&link, cluster, scan, place).await,
        }
        .map_err(|error| self.failed(&link, error))?;
        let entries = self.peek_all(&link, keys).await?;
        let now = entries.iter().map(|(_, answer)| answer.now).max();
        let entries = entries
            .into_iter()
            .filter(|(_, answer)| answer.reply != Slot::Absent)
            .map(|(key, answer)| (key, answer.reply))
            .collect();
        Ok(Answer {
            now: match now {
                Some(now) => now,
                None => self.time(&link).await?,
            },
            reply: Page {
                entries,
                next: next.map(|place| place.write()),
            },
        })
    }

    async fn page_of_cluster(
        &self,
        link: &Link,
        mut cluster: ClusterConnection,
        scan: &Scan,
        place: Option<Place>,
    ) -> RedisResult<(Vec<String>, Option<Place>)> {
        let masters = masters(&mut cluster).await?;
        let node_of = |place: &Place| place.node.clone().unwrap_or_default();
        let begin = match &place {
            // The node of the cursor, or the next one if it is gone.
            Some(place) => masters.iter().position(|node| *node >= node_of(place)),
            None => (!masters.is_empty()).then_some(0),
        };
        let Some(begin) = begin else {
            return Ok((Vec::new(), None));
        };
        let node = masters[begin].clone();
        let place = place.filter(|place| node_of(place) == node);
        let (keys, next) = page_of_keys(link, scan, Some(node), place).await?;
        let next = next.or_else(|| {
            let node = Some(masters.get(begin + 1)?.clone());
            Some(Place { node, cursor: 0 })
        });
        Ok((keys, next))
    }

    async fn peek_all(
        &self,
        link: &Arc<Link>,
        keys: Vec<String>,
    ) -> Result<Vec<(String, Answer<Slot>)>, StoreError> {
        let peeks: Vec<_> = keys.iter().map(|key| (key.as_str(), Argv::NONE)).collect();
        let answers = self.run_all(link, &script::PEEK, &peeks).await;
        drop(peeks);
        keys.into_iter()
            .zip(answers)
            .map(|(key, answer)| Ok((key, peeked(answer?)?)))
            .collect()
    }

    pub(super) async fn time(&self, link: &Arc<Link>) -> Result<StoreTime, StoreError> {
        let time = link.send(&::redis::cmd("TIME")).await;
        let time = time.and_then(read::<(u64, u64)>);
        let (seconds, micros) = time.map_err(|error| self.failed(link, error))?;
        Ok(StoreTime::from_micros(seconds * 1_000_000 + micros))
    }
}

/// The masters of a cluster, in the order of their addresses.
pub(super) async fn masters(cluster: &mut ClusterConnection) -> RedisResult<Vec<Node>> {
    let mut cmd = ::redis::cmd("CLUSTER");
    cmd.arg("SLOTS");
    let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
    let answer = cluster.route_command(cmd, any).await?.extract_error()?;
    let ranges = read::<Vec<Vec<Value>>>(answer)?;
    let mut masters = Vec::with_capacity(ranges.len());
    for range in ranges {
        // From, to, master, replicas…
        let Some(Value::Array(master)) = range.into_iter().nth(2) else {
            continue;
        };
        let mut master = master.into_iter();
        if let (Some(host), Some(port)) = (master.next(), master.next()) {
            masters.push((read::<String>(host)?, read::<u16>(port)?));
        }
    }
    masters.sort();
    masters.dedup();
    Ok(masters)
}

async fn page_of_keys(
    link: &Link,
    scan: &Scan,
    node: Option<Node>,
    place: Option<Place>,
) -> RedisResult<(Vec<String>, Option<Place>)> {
    let cursor = place.map_or(0, |place| place.cursor);
    let mut cmd = ::redis::cmd("SCAN");
    cmd.arg(cursor)
        .arg("MATCH")
        .arg(pattern(&scan.prefix))
        .arg("COUNT")
        .arg(scan.page_size.max(1));
    let answer = send_to(link, cmd, node.as_ref()).await?;
    let (next, keys): (u64, Vec<Vec<u8>>) = read(answer)?;
    // Keys that are no text are none of ours, whatever they begin with.
    let keys = keys
        .into_iter()
        .filter_map(|key| String::from_utf8(key).ok());
    let next = (next != 0).then_some(Place { node, cursor: next });
    Ok((keys.collect(), next))
}

async fn send_to(link: &Link, cmd: Cmd, node: Option<&Node>) -> RedisResult<Value> {
    match (link.wire(), node) {
        (Wire::Cluster(mut cluster), Some((host, port))) => {
            let there = SingleNodeRoutingInfo::ByAddress {
                host: host.clone(),
                port: *port,
            };
            let answer = cluster.route_command(cmd, RoutingInfo::SingleNode(there));
            answer.await?.extract_error()
        }
        _ => link.send(&cmd).await,
    }
}

fn read<T: FromRedisValue>(value: Value) -> RedisResult<T> {
    Ok(::redis::from_redis_value(value)?)
}

/// A glob that matches exactly the keys that begin with `prefix`.
fn pattern(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for char in prefix.chars() {
        if matches!(char, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern.push('*');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_matched_as_it_is_written() {
        assert_eq!(pattern("shop:a*b"), r"shop:a\*b*");
        assert_eq!(pattern(r"[x]?\"), r"\[x\]\?\\*");
        assert_eq!(pattern(""), "*");
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let places = [
            (None, 7),
            (Some(("10.0.0.1".to_owned(), 6379)), 0),
            (Some(("::1".to_owned(), 6379)), u64::MAX),
        ];
        for (node, cursor) in places {
            let place = Place { node, cursor };
            assert_eq!(Place::read(&place.write()), Some(place));
        }
    }

    #[test]
    fn a_text_that_is_no_cursor_is_not_read() {
        for text in ["", "7", "host/7/x", "host:port/7", "/-1"] {
            assert_eq!(Place::read(&Cursor(text.to_owned())), None, "{text}");
        }
    }
}
