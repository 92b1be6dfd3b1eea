//! Where the server is, and how a connection to it is made.

use ::redis::{AsyncConnectionConfig, Client, ErrorKind, InfoDict, RedisError};

use super::fault::{Fault, misconfigured};
use super::link::{Link, Wire};
use super::script::Dialect;
use crate::error::{StoreError, StoreErrorKind};

/// The oldest server that has `SET … PXAT`.
const OLDEST: (u32, u32) = (6, 2);

/// The first server with flags on scripts.
const WITH_FLAGS: (u32, u32) = (7, 0);

/// How many commands may wait to be written before senders have to.
const WRITE_QUEUE: usize = 1024;

/// Where records are kept.
pub(super) enum Target {
    Node(Client),
}

impl Target {
    /// Opens a connection and looks at what answers. The caller limits the time.
    pub(super) async fn open(&self) -> Result<Link, StoreError> {
        let wire = match self {
            Self::Node(client) => Wire::Node(
                client
                    .get_multiplexed_async_connection_with_config(&config())
                    .await
                    .map_err(unreachable)?,
            ),
        };
        // Until the version is known, only what every server understands is sent.
        let link = Link::new(wire.clone(), Dialect::Plain);
        let info = match link.send(&::redis::cmd("INFO")).await {
            Ok(info) => ::redis::from_redis_value::<InfoDict>(info).map_err(RedisError::from),
            Err(error) => Err(error),
        };
        match info {
            Ok(info) => Ok(Link::new(wire, judge(&info)?)),
            // A user without the right to INFO: the oldest dialect works everywhere.
            Err(error) if error.code() == Some("NOPERM") => Ok(link),
            Err(error) => Err(Fault::from(error).error),
        }
    }
}

/// Time-outs are the pool's: the client's own would only add a second timer to each call.
fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WRITE_QUEUE)
}

fn unreachable(error: RedisError) -> StoreError {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return misconfigured("redis: the server refused the user name or the password")
            .with_source(error);
    }
    Fault::from(error).error
}

fn judge(info: &InfoDict) -> Result<Dialect, StoreError> {
    let text = info.get::<String>("redis_version").unwrap_or_default();
    let version = version(&text).ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::Protocol,
            format!("redis: the server names its version `{text}`"),
        )
    })?;
    if version < OLDEST {
        return Err(misconfigured(format!(
            "redis: the server is version {text}; records need 6.2 or later, or Valkey"
        )));
    }
    let is = |field: &str, value: &str| info.get::<String>(field).as_deref() == Some(value);
    if is("loading", "1") {
        return Err(StoreError::new(
            StoreErrorKind::Refused,
            "redis: the server is loading its data",
        ));
    }
    if is("role", "slave") {
        return Err(StoreError::new(
            StoreErrorKind::Refused,
            "redis: the server is a replica and takes no writes",
        ));
    }
    Ok(if version < WITH_FLAGS {
        Dialect::Plain
    } else {
        Dialect::Flags
    })
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
