//! How one server is reached: address, user, database, certificate.

use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::io::tcp::TcpSettings;
use ::redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisError,
};
use socket2::TcpKeepalive;

use super::fault::{Fault, misconfigured};
use crate::error::{StoreError, StoreErrorKind};

/// How many commands may wait to be written before senders have to.
const WRITE_QUEUE: usize = 1024;

/// A server's address and what to say to it. Its `Debug` and errors name no password.
#[derive(Clone)]
pub(super) struct Endpoint {
    info: ConnectionInfo,
}

impl Endpoint {
    /// The endpoint of a URL; certificates are checked against `authority` (PEM) if there is one.
    pub(super) fn parse(url: &str, authority: Option<&[u8]>) -> Result<Self, StoreError> {
        let wants_tls = url.starts_with("rediss:") || url.starts_with("valkeys:");
        if wants_tls && cfg!(not(feature = "tls")) {
            return Err(misconfigured(
                "redis: `rediss://` needs the feature `tls` of idem-core",
            ));
        }
        let info = url.into_connection_info().map_err(unusable)?;
        let info = info.set_tcp_settings(tcp());
        #[cfg(feature = "tls")]
        let info = if wants_tls {
            super::tls::secured(info, authority)?
        } else {
            info
        };
        #[cfg(not(feature = "tls"))]
        let _ = authority;
        Ok(Self { info })
    }

    /// Another server of the same group, reached the same way.
    pub(super) fn at(&self, host: &str, port: u16) -> Self {
        let host = host.to_owned();
        let addr = match self.info.addr() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        Self {
            info: self.info.clone().set_addr(addr),
        }
    }

    pub(super) fn info(&self) -> ConnectionInfo {
        self.info.clone()
    }

    /// Connects. The caller limits the time: the client's own time-outs would only add a second
    /// timer to each call.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let config = config().set_pipeline_buffer_size(WRITE_QUEUE);
        connect(self.info.clone(), &config).await
    }

    /// Connects for subscriptions, whose messages go to `config`'s push sender.
    pub(super) async fn connect_for_pushes(
        &self,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, StoreError> {
        let settings = self.info.redis_settings().clone();
        let info = self
            .info
            .clone()
            .set_redis_settings(settings.set_protocol(ProtocolVersion::RESP3));
        connect(info, config).await
    }
}

async fn connect(
    info: ConnectionInfo,
    config: &AsyncConnectionConfig,
) -> Result<MultiplexedConnection, StoreError> {
    let place = info.addr().to_string();
    Client::open(info)
        .map_err(unusable)?
        .get_multiplexed_async_connection_with_config(config)
        .await
        .map_err(|error| match error.kind() {
            ErrorKind::Io => StoreError::new(
                StoreErrorKind::Unavailable,
                format!("redis: no connection to {place}: {error}; is the server there?"),
            )
            .with_source(error),
            _ => unreachable(error),
        })
}

/// How long what was sent may go unacknowledged by the other machine. By itself the system goes on
/// sending for a quarter of an hour, and the connection of a cluster's client to that node stays, though
/// a new one would be answered.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNHEARD: Duration = Duration::from_secs(10);

/// What every connection's socket is told. One that is silent for long is asked for a sign of life
/// before a router in between forgets it; else the next call on it would wait in vain.
pub(super) fn tcp() -> TcpSettings {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(30))
        .with_interval(Duration::from_secs(10))
        .with_retries(3);
    let settings = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    #[cfg(any(target_os = "android", target_os = "linux"))]
    let settings = settings.set_user_timeout(UNHEARD);
    settings
}

/// What every connection is made with.
pub(super) fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
}

pub(super) fn unusable(error: RedisError) -> StoreError {
    misconfigured(format!("redis: {error}")).with_source(error)
}

pub(super) fn unreachable(error: RedisError) -> StoreError {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return misconfigured("redis: the server refused the user name or the password")
            .with_source(error);
    }
    Fault::from(error).error
}
