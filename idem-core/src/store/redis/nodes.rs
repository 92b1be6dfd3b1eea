//! The nodes behind a connection, one by one.

use std::collections::BTreeSet;
use std::io;

use ::redis::cluster_async::ClusterConnection;
use ::redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use ::redis::{Cmd, FromRedisValue, RedisResult, Value};
use tokio::task::JoinSet;

use super::link::{Link, Wire};

/// A node of a cluster, by its address.
pub(super) type Node = (String, u16);

/// The masters of a cluster, in the order of their addresses; `None` for a single server.
pub(super) async fn masters(link: &Link) -> RedisResult<Option<Vec<Node>>> {
    let Wire::Cluster(cluster) = link.wire() else {
        return Ok(None);
    };
    let mut masters = Vec::new();
    for master in slots(&cluster).await? {
        let mut master = master.into_iter();
        if let (Some(host), Some(port)) = (master.next(), master.next()) {
            masters.push((read(host)?, read(port)?));
        }
    }
    masters.sort();
    masters.dedup();
    Ok(Some(masters))
}

/// The masters of a cluster as one of its nodes names them, to be compared.
#[derive(PartialEq, Eq)]
pub(super) struct Masters(BTreeSet<Vec<String>>);

pub(super) async fn masters_of(cluster: &ClusterConnection) -> RedisResult<Masters> {
    let masters = slots(cluster).await?;
    // Address and number. What else a node tells of another is its own view.
    let name = |master: Vec<Value>| master.into_iter().take(3).map(text).collect();
    Ok(Masters(masters.into_iter().map(name).collect()))
}

fn text(value: Value) -> String {
    ::redis::from_redis_value(value).unwrap_or_default()
}

/// What the cluster says of the master of each range of slots.
async fn slots(cluster: &ClusterConnection) -> RedisResult<Vec<Vec<Value>>> {
    let mut cmd = ::redis::cmd("CLUSTER");
    cmd.arg("SLOTS");
    let ranges = ask_any(cluster, cmd).await?;
    // From, to, master, replicas.
    let master = |range: Vec<Value>| match range.into_iter().nth(2) {
        Some(Value::Array(master)) => Some(master),
        _ => None,
    };
    let ranges = read::<Vec<Vec<Value>>>(ranges)?;
    Ok(ranges.into_iter().filter_map(master).collect())
}

/// Asks some masters at once, and takes the first answer: a single one may be dead. The client's own
/// way of asking all does not do, as it can wait for other calls, of which some hang then.
pub(super) async fn ask_any(cluster: &ClusterConnection, cmd: Cmd) -> RedisResult<Value> {
    const SLOTS: u16 = 16_384;
    let mut asked = JoinSet::new();
    for slot in (0..SLOTS).step_by(2_048) {
        let there = SingleNodeRoutingInfo::SpecificNode(Route::new(slot, SlotAddr::Master));
        let (mut cluster, cmd) = (cluster.clone(), cmd.clone());
        asked.spawn(async move {
            let answer = cluster.route_command(cmd, RoutingInfo::SingleNode(there));
            answer.await?.extract_error()
        });
    }
    let mut first = Err(io::Error::from(io::ErrorKind::NotConnected).into());
    while first.is_err()
        && let Some(Ok(answer)) = asked.join_next().await
    {
        first = answer;
    }
    first
}

/// Asks a node, or the single server.
pub(super) async fn ask(link: &Link, node: Option<&Node>, cmd: Cmd) -> RedisResult<Value> {
    match (link.wire(), node) {
        (Wire::Cluster(mut cluster), Some((host, port))) => {
            let there = SingleNodeRoutingInfo::ByAddress {
                host: host.clone(),
                port: *port,
            };
            let answer = cluster.route_command(cmd, RoutingInfo::SingleNode(there));
            answer.await?.extract_error()
        }
        (Wire::Cluster(cluster), None) => ask_any(&cluster, cmd).await,
        (Wire::Node(_), _) => link.send(&cmd).await,
    }
}

pub(super) fn read<T: FromRedisValue>(value: Value) -> RedisResult<T> {
    Ok(::redis::from_redis_value(value)?)
}
