//! Where the records are to be kept, said step by step.

use std::fmt;
use std::time::Duration;

use super::RedisStore;
use super::endpoint::Endpoint;
use super::fault::misconfigured;
use super::sentinel::Sentinels;
use super::target::{Cluster, Target, no_nodes};
use crate::error::StoreError;

/// How long a call may take if nothing else is said.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(2);

/// Builds a [`RedisStore`]: one server, a cluster, or the master that Sentinels name.
///
/// URLs read `redis://[user:password@]host[:port][/database]`, and `rediss://` for TLS (feature
/// `tls`). User and password are written percent-encoded where they hold `:`, `/`, `@` or `%`.
///
/// # Examples
/// ```no_run
/// # async fn example() -> Result<(), idem_core::StoreError> {
/// use std::time::Duration;
/// use idem_core::store::redis::RedisBuilder;
///
/// let one = RedisBuilder::server("redis://127.0.0.1/").connect().await?;
///
/// let cluster = RedisBuilder::cluster(["redis://10.0.0.1/", "redis://10.0.0.2/"])
///     .limit(Duration::from_secs(1))
///     .connect()
///     .await?;
///
/// let watched = RedisBuilder::sentinel("main", ["redis://10.0.1.1:26379/", "redis://10.0.1.2:26379/"])
///     .master("redis://shop:secret@master/0")
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisBuilder {
    place: Place,
    limit: Duration,
    authority: Option<Vec<u8>>,
}

#[derive(Clone)]
enum Place {
    Server(String),
    Cluster(Vec<String>),
    Sentinel {
        service: String,
        sentinels: Vec<String>,
        master: String,
    },
}

impl RedisBuilder {
    /// What `url` names, as [`Idempotency::redis`](crate::Idempotency::redis) takes it:
    ///
    /// | URL | |
    /// |---|---|
    /// | `redis://[user:password@]host[:port][/database]` | one server |
    /// | `redis://host:port,redis://host:port` | a cluster, by some of its nodes, each a whole URL |
    /// | `redis+sentinel://[user:password@]host[:port][,host[:port]…]/group[/database]` | the master of a group that these Sentinels watch; user, password and database are the master's, and a port is 26379 where none is said |
    ///
    /// With `rediss` in place of `redis` all connections are encrypted. A cluster of which one node
    /// is known, and Sentinels that ask for a password, have functions of their own below.
    #[must_use]
    pub fn url(url: &str) -> Self {
        for scheme in ["redis", "rediss"] {
            let rest = url.strip_prefix(scheme);
            if let Some(rest) = rest.and_then(|rest| rest.strip_prefix("+sentinel://")) {
                return Self::watched(scheme, rest);
            }
        }
        let mut urls = listed(url);
        match urls.pop() {
            Some(url) if urls.is_empty() => Self::server(url),
            last => Self::cluster(urls.into_iter().chain(last)),
        }
    }

    fn watched(scheme: &str, rest: &str) -> Self {
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, hosts) = match hosts.rsplit_once('@') {
            Some((account, hosts)) => (format!("{account}@"), hosts),
            None => (String::new(), hosts),
        };
        let (service, database) = path.split_once('/').unwrap_or((path, ""));
        let sentinels = hosts.split(',').map(|host| {
            let port = if has_port(host) { "" } else { ":26379" };
            format!("{scheme}://{host}{port}/")
        });
        Self::sentinel(service, sentinels).master(format!("{scheme}://{account}master/{database}"))
    }

    /// One server.
    #[must_use]
    pub fn server(url: impl Into<String>) -> Self {
        Self::at(Place::Server(url.into()))
    }

    /// A Redis Cluster, by the URLs of some of its nodes; the others are learnt from them.
    #[must_use]
    pub fn cluster<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Self {
        Self::at(Place::Cluster(urls.into_iter().map(U::into).collect()))
    }

    /// The master of the group `service`, as named by the Sentinels at these URLs. User and
    /// password in them are those of the Sentinels.
    #[must_use]
    pub fn sentinel<U: Into<String>>(
        service: impl Into<String>,
        urls: impl IntoIterator<Item = U>,
    ) -> Self {
        Self::at(Place::Sentinel {
            service: service.into(),
            sentinels: urls.into_iter().map(U::into).collect(),
            master: "redis://master/".to_owned(),
        })
    }

    fn at(place: Place) -> Self {
        Self {
            place,
            limit: DEFAULT_LIMIT,
            authority: None,
        }
    }

    /// How the master that the Sentinels name is reached: user, password, database and TLS are
    /// those of this URL, its host is not used. Without it: `redis://`, no user, database 0.
    ///
    /// Says nothing for a single server or a cluster.
    #[must_use]
    pub fn master(mut self, url: impl Into<String>) -> Self {
        if let Place::Sentinel { master, .. } = &mut self.place {
            *master = url.into();
        }
        self
    }

    /// How long a call may take, connecting included; 2 s if nothing is said.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Trusts this authority (certificates in PEM) for `rediss://`, instead of the system's.
    #[must_use]
    pub fn certificate_authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authority = Some(pem.into());
        self
    }

    /// The store, without a connection: the first call makes one.
    ///
    /// # Errors
    /// [`Misconfigured`](crate::StoreErrorKind::Misconfigured) for a URL that can not be used, an
    /// empty list, a limit of zero, or `rediss://` without the feature `tls`.
    pub fn build(self) -> Result<RedisStore, StoreError> {
        if self.limit.is_zero() {
            return Err(misconfigured("redis: a limit of zero lets no call through"));
        }
        let target = self.target()?;
        Ok(RedisStore::new(target, self.limit))
    }

    /// The store, once its server has answered.
    ///
    /// # Errors
    /// Those of [`build`](Self::build);
    /// [`Misconfigured`](crate::StoreErrorKind::Misconfigured) for a refused password or a server
    /// older than 6.2; another kind if the server does not answer within the limit, is loading, or
    /// is a replica.
    pub async fn connect(self) -> Result<RedisStore, StoreError> {
        let store = self.build()?;
        store.reach().await?;
        Ok(store)
    }

    fn target(&self) -> Result<Target, StoreError> {
        let endpoint = |url: &String| Endpoint::parse(url, self.authority.as_deref());
        let all = |urls: &[String]| -> Result<Vec<Endpoint>, StoreError> {
            if urls.is_empty() {
                return Err(no_nodes());
            }
            urls.iter().map(endpoint).collect()
        };
        Ok(match &self.place {
            Place::Sentinel { service, .. } if service.is_empty() => {
                return Err(misconfigured(
                    "redis: the Sentinels are not told which group is meant; \
                     its name ends their URL, as in redis+sentinel://host:26379/main",
                ));
            }
            Place::Server(url) => Target::Node(endpoint(url)?),
            Place::Cluster(urls) => Target::Cluster(Cluster {
                endpoints: all(urls)?,
                #[cfg(feature = "tls")]
                authority: self.authority.clone(),
            }),
            Place::Sentinel {
                service,
                sentinels,
                master,
            } => Target::Sentinels(Sentinels {
                endpoints: all(sentinels)?,
                service: service.clone(),
                master: endpoint(master)?,
            }),
        })
    }
}

/// The URLs of a list. A comma in a password has no URL behind it.
fn listed(urls: &str) -> Vec<String> {
    let mut listed: Vec<String> = Vec::new();
    for piece in urls.split(',') {
        match listed.last_mut() {
            Some(last) if !piece.contains("://") => {
                last.push(',');
                last.push_str(piece);
            }
            _ => listed.push(piece.trim().to_owned()),
        }
    }
    listed
}

/// Whether a host, which may be an IPv6 address in brackets, has its port behind it.
fn has_port(host: &str) -> bool {
    let port = host.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Debug for RedisBuilder {
    /// Names no URL: they hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.place {
            Place::Server(_) => "server",
            Place::Cluster(_) => "cluster",
            Place::Sentinel { .. } => "sentinel",
        };
        f.debug_struct("RedisBuilder")
            .field("place", &place)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreErrorKind;

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_without_its_feature_names_the_feature() {
        for url in ["rediss://127.0.0.1/", "valkeys://127.0.0.1/"] {
            let error = RedisBuilder::server(url).build().unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
            assert!(error.to_string().contains("feature `tls`"), "{error}");
        }
    }

    /// The server, the nodes of a cluster, or group, Sentinels and master.
    fn named(url: &str) -> Vec<String> {
        match RedisBuilder::url(url).place {
            Place::Server(url) => vec![url],
            Place::Cluster(urls) => [vec!["cluster".to_owned()], urls].concat(),
            Place::Sentinel {
                service,
                sentinels,
                master,
            } => [vec![service], sentinels, vec![master]].concat(),
        }
    }

    #[test]
    fn a_url_names_a_server_a_cluster_or_what_sentinels_watch() {
        let servers = [
            "redis://127.0.0.1/",
            "rediss://:a,b@host:7000/1",
            "unix:/tmp/a,b",
            "",
        ];
        for url in servers {
            assert_eq!(named(url), [url]);
        }
        assert_eq!(
            named("redis://:a,b@one:7000/, rediss://two/,redis://[::1]"),
            [
                "cluster",
                "redis://:a,b@one:7000/",
                "rediss://two/",
                "redis://[::1]"
            ]
        );
        assert_eq!(
            named("redis+sentinel://shop:a%40b@one:7000,[::1],two/main/3"),
            [
                "main",
                "redis://one:7000/",
                "redis://[::1]:26379/",
                "redis://two:26379/",
                "redis://shop:a%40b@master/3",
            ]
        );
        assert_eq!(
            named("rediss+sentinel://one/main"),
            ["main", "rediss://one:26379/", "rediss://master/"]
        );
    }

    #[test]
    fn sentinels_without_a_group_say_where_its_name_goes() {
        for url in ["redis+sentinel://one", "redis+sentinel://one:26379//2"] {
            let error = RedisBuilder::url(url).build().unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
            assert!(error.to_string().contains("redis+sentinel://"), "{error}");
        }
    }

    #[test]
    fn no_text_of_a_builder_or_its_errors_tells_a_password() {
        let builders = [
            RedisBuilder::server("redis://:s3cret@host:port/"),
            RedisBuilder::cluster(["redis://:s3cret@a/", "unix:s3cret"]),
            RedisBuilder::sentinel("s", ["redis://a/"]).master("http://:s3cret@a/"),
            RedisBuilder::url("redis+sentinel://:s3cret@a:port,b/main"),
            RedisBuilder::url("redis://:s3cret@a:1,b:2"),
        ];
        for builder in builders {
            let told = format!("{builder:?} {:?}", builder.clone().build());
            assert!(!told.contains("s3cret"), "{told}");
        }
        let error = RedisBuilder::server("redis://")
            .limit(Duration::ZERO)
            .build();
        assert_eq!(error.unwrap_err().kind(), StoreErrorKind::Misconfigured);
    }
}
