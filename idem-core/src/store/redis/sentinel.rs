//! A master that Sentinels name.
//!
//! The client's own Sentinel support asks one Sentinel after the other and waits for each; two
//! silent ones in a list of three would take longer than a call may. Here all are asked at once,
//! and the first to name a server that really is a master wins.

use ::redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use super::endpoint::Endpoint;
use super::fault::{Fault, misconfigured};
use super::script::Dialect;
use super::target::look_at;
use crate::error::{StoreError, StoreErrorKind};

/// A group that is watched by Sentinels.
#[derive(Clone)]
pub(super) struct Sentinels {
    pub(super) endpoints: Vec<Endpoint>,
    /// The group's name.
    pub(super) service: String,
    /// User, database and certificate for the master; its address comes from the Sentinels.
    pub(super) master: Endpoint,
}

impl Sentinels {
    /// Connects to the master, and says where it is.
    pub(super) async fn open(
        &self,
    ) -> Result<(Endpoint, MultiplexedConnection, Dialect), StoreError> {
        let mut asked = JoinSet::new();
        for sentinel in &self.endpoints {
            let (sentinel, group) = (sentinel.clone(), self.clone());
            asked.spawn(async move { group.open_through(&sentinel).await });
        }
        let mut failure = StoreError::new(
            StoreErrorKind::Unavailable,
            "redis: no Sentinel could be asked",
        );
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(opened)) => return Ok(opened),
                Ok(Err(error)) => failure = error,
                // The task was stopped with its runtime.
                Err(_) => {}
            }
        }
        Err(failure)
    }

    async fn open_through(
        &self,
        sentinel: &Endpoint,
    ) -> Result<(Endpoint, MultiplexedConnection, Dialect), StoreError> {
        let mut connection = sentinel.connect().await?;
        let named: Option<(String, u16)> = ::redis::cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&self.service)
            .query_async(&mut connection)
            .await
            .map_err(|error| Fault::from(error).error)?;
        let Some((host, port)) = named else {
            return Err(misconfigured(format!(
                "redis: the Sentinels do not know a group called `{}`",
                self.service
            )));
        };
        let endpoint = self.master.at(&host, port);
        let connection = endpoint.connect().await?;
        let dialect = look_at(&connection).await?;
        Ok((endpoint, connection, dialect))
    }
}
