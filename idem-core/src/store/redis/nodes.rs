//! The nodes behind a connection, one by one.

use ::redis::cluster_async::ClusterConnection;
use ::redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use ::redis::{Cmd, FromRedisValue, RedisResult, Value};

use super::link::{Link, Wire};

/// A node of a cluster, by its address.
pub(super) type Node = (String, u16);

/// The masters of a cluster, in the order of their addresses; `None` for a single server.
pub(super) async fn masters(link: &Link) -> RedisResult<Option<Vec<Node>>> {
    match link.wire() {
        Wire::Node(_) => Ok(None),
        Wire::Cluster(cluster) => masters_of(cluster).await.map(Some),
    }
}

async fn masters_of(mut cluster: ClusterConnection) -> RedisResult<Vec<Node>> {
    let mut cmd = ::redis::cmd("CLUSTER");
    cmd.arg("SLOTS");
    let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
    let answer = cluster.route_command(cmd, any).await?.extract_error()?;
    let ranges = read::<Vec<Vec<Value>>>(answer)?;
    let mut masters = Vec::with_capacity(ranges.len());
    for range in ranges {
        // From, to, master, replicas.
        let Some(Value::Array(master)) = range.into_iter().nth(2) else {
            continue;
        };
        let mut master = master.into_iter();
        if let (Some(host), Some(port)) = (master.next(), master.next()) {
            masters.push((read(host)?, read(port)?));
        }
    }
    masters.sort();
    masters.dedup();
    Ok(masters)
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
        _ => link.send(&cmd).await,
    }
}

pub(super) fn read<T: FromRedisValue>(value: Value) -> RedisResult<T> {
    Ok(::redis::from_redis_value(value)?)
}
