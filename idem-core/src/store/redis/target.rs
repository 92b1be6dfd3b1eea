//! Where the records are, and what answers there.

use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::cluster::ClusterClient;
use ::redis::{AsyncConnectionConfig, InfoDict, RedisResult, Value};

use super::endpoint::{Endpoint, tcp, unreachable, unusable};
use super::fault::{Fault, misconfigured};
use super::link::{Link, Wire};
use super::no_answer;
use super::nodes::{ask_any, masters_of};
use super::script::Dialect;
use super::sentinel::Sentinels;
use crate::error::{StoreError, StoreErrorKind};

/// The oldest server that has `SET … PXAT`.
const OLDEST: (u32, u32) = (6, 2);

/// The first server with flags on scripts.
const WITH_FLAGS: (u32, u32) = (7, 0);

/// Some nodes of a cluster; the others are learnt from them.
pub(super) struct Cluster {
    pub(super) endpoints: Vec<Endpoint>,
    /// Certificates in PEM to trust instead of the system's.
    #[cfg(feature = "tls")]
    pub(super) authority: Option<Vec<u8>>,
}

/// Where records are kept.
pub(super) enum Target {
    Node(Endpoint),
    Sentinels(Sentinels),
    Cluster(Cluster),
}

impl Target {
    /// Opens a connection and looks at what answers. The caller limits the time, to `limit`.
    pub(super) async fn open(&self, limit: Duration) -> Result<Link, StoreError> {
        match self {
            Self::Node(endpoint) => {
                let connection = endpoint.connect().await?;
                let dialect = look_at(&connection).await?;
                Ok(Link::new(Wire::Node(connection), dialect, limit))
            }
            Self::Sentinels(sentinels) => {
                let (_, connection, dialect) = sentinels.open().await?;
                Ok(Link::new(Wire::Node(connection), dialect, limit))
            }
            Self::Cluster(cluster) => {
                let client = cluster_client(cluster, limit)?;
                let connection = client.get_async_connection().await.map_err(unreachable)?;
                // What else a node says of itself is no matter of the others: where its own keys
                // are refused, each call hears that.
                let info = ask_any(&connection, ::redis::cmd("INFO")).await;
                let dialect = told(info)?.map_or(Ok(Dialect::Plain), |info| dialect(&info))?;
                let masters = masters_of(&connection).await.ok();
                Ok(Link::new(Wire::Cluster(connection), dialect, limit).with_masters(masters))
            }
        }
    }

    /// Opens a connection for subscriptions. In a cluster any node will do: messages are passed on
    /// to all. One that does not answer leaves the others their part of `limit`.
    pub(super) async fn open_for_pushes(
        &self,
        config: &AsyncConnectionConfig,
        limit: Duration,
    ) -> Result<MultiplexedConnection, StoreError> {
        match self {
            Self::Node(endpoint) => endpoint.connect_for_pushes(config).await,
            Self::Sentinels(sentinels) => {
                let (master, _, _) = sentinels.open().await?;
                master.connect_for_pushes(config).await
            }
            Self::Cluster(cluster) => {
                let nodes = u32::try_from(cluster.endpoints.len()).unwrap_or(u32::MAX);
                let part = limit / nodes.saturating_add(1);
                let mut failure = no_nodes();
                for endpoint in &cluster.endpoints {
                    let opening = endpoint.connect_for_pushes(config);
                    match tokio::time::timeout(part, opening).await {
                        Ok(Ok(connection)) => return Ok(connection),
                        Ok(Err(error)) => failure = error,
                        Err(_) => failure = no_answer(part),
                    }
                }
                Err(failure)
            }
        }
    }
}

pub(super) fn no_nodes() -> StoreError {
    misconfigured("redis: the list of servers is empty")
}

/// A client that sends each command once: resending is the caller's choice. A node that does not
/// even greet is left out early enough for the others to be asked within `limit`.
fn cluster_client(cluster: &Cluster, limit: Duration) -> Result<ClusterClient, StoreError> {
    let infos = cluster.endpoints.iter().map(Endpoint::info);
    let builder = ClusterClient::builder(infos)
        .retries(0)
        .connection_timeout(limit / 5)
        .response_timeout(limit)
        .tcp_settings(tcp());
    #[cfg(feature = "tls")]
    let builder = match &cluster.authority {
        Some(authority) => builder.certs(super::tls::trusting(authority)),
        None => builder,
    };
    builder.build().map_err(unusable)
}

/// What a server says of itself, if its user may ask: which scripts it understands.
pub(super) async fn look_at(connection: &MultiplexedConnection) -> Result<Dialect, StoreError> {
    let info = ::redis::cmd("INFO");
    judge(connection.clone().send_packed_command(&info).await)
}

fn judge(info: RedisResult<Value>) -> Result<Dialect, StoreError> {
    let Some(info) = told(info)? else {
        return Ok(Dialect::Plain);
    };
    let dialect = dialect(&info)?;
    if field(&info, "loading") == "1" {
        return Err(refused("redis: the server is loading its data"));
    }
    if field(&info, "role") == "slave" {
        return Err(refused(
            "redis: the server is a replica and takes no writes",
        ));
    }
    Ok(dialect)
}

/// `None` if the user may not ask; the plain scripts work everywhere.
fn told(info: RedisResult<Value>) -> Result<Option<InfoDict>, StoreError> {
    let info = info
        .and_then(Value::extract_error)
        .and_then(|info| Ok(::redis::from_redis_value::<InfoDict>(info)?));
    match info {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.code() == Some("NOPERM") => Ok(None),
        Err(error) => Err(Fault::from(error).error),
    }
}

fn dialect(info: &InfoDict) -> Result<Dialect, StoreError> {
    let text = field(info, "redis_version");
    let Some(version) = version(&text) else {
        return Err(StoreError::new(
            StoreErrorKind::Protocol,
            format!("redis: the server names its version `{text}`"),
        ));
    };
    if version < OLDEST {
        return Err(misconfigured(format!(
            "redis: the server is version {text}; records need 6.2 or later, or Valkey"
        )));
    }
    Ok(if version < WITH_FLAGS {
        Dialect::Plain
    } else {
        Dialect::Flags
    })
}

fn field(info: &InfoDict, name: &str) -> String {
    info.get(name).unwrap_or_default()
}

fn refused(detail: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Refused, detail)
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(info: &str) -> Result<Dialect, StoreError> {
        judge(Ok(Value::BulkString(info.as_bytes().to_vec())))
    }

    fn refusal(info: &str) -> (StoreErrorKind, String) {
        let error = judged(info).unwrap_err();
        (error.kind(), error.to_string())
    }

    // CASES R05
    #[test]
    fn a_server_older_than_6_2_is_a_matter_of_set_up() {
        for version in ["6.0.16", "5.0.14", "2.8.4"] {
            let (kind, told) = refusal(&format!("redis_version:{version}\r\nrole:master\r\n"));
            assert_eq!(kind, StoreErrorKind::Misconfigured);
            assert!(told.contains(version) && told.contains("6.2"), "{told}");
        }
    }

    #[test]
    fn scripts_have_flags_from_version_7_on() {
        let of = |version| judged(&format!("redis_version:{version}\r\nrole:master\r\n"));
        assert_eq!(of("6.2.14").unwrap(), Dialect::Plain);
        assert_eq!(of("7.0.15").unwrap(), Dialect::Flags);
        assert_eq!(of("10.0.0").unwrap(), Dialect::Flags);
    }

    #[test]
    fn a_server_that_can_not_write_now_is_refused() {
        let (kind, told) = refusal("redis_version:7.0.15\r\nloading:1\r\n");
        assert_eq!(kind, StoreErrorKind::Refused);
        assert!(told.contains("loading"), "{told}");
        let (kind, told) = refusal("redis_version:7.0.15\r\nrole:slave\r\n");
        assert_eq!(kind, StoreErrorKind::Refused);
        assert!(told.contains("replica"), "{told}");
    }

    #[test]
    fn a_server_that_tells_nothing_of_itself_is_not_trusted() {
        for info in ["", "redis_version:new\r\n", "HTTP/1.1 400 Bad Request\r\n"] {
            assert_eq!(refusal(info).0, StoreErrorKind::Protocol, "{info}");
        }
    }
}
