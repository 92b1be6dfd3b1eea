//! The protocol of the textbooks: SET NX with an expiry before the body, SET after it, DEL on an
//! error. No write looks at whose key it is.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use idem_tests::history::{LEASE, What, now};
use idem_tests::resp::{Reply, ask};

use crate::body::{Body, Call, Failed};

const PROCESSING: &str = "processing";

#[derive(Clone)]
pub(crate) struct Textbook {
    server: SocketAddr,
    is_slow: bool,
}

impl Textbook {
    /// `is_slow` if every other body is to outlive its lease.
    pub(crate) fn open(url: &str, is_slow: bool) -> Result<Self> {
        let address = url.strip_prefix("redis://").context("no URL of Redis")?;
        let server = address.trim_end_matches('/').parse()?;
        Ok(Self { server, is_slow })
    }

    pub(crate) async fn call(&self, call: &Call) -> Result<u64, Failed> {
        let lease = LEASE.as_millis().to_string();
        let key = format!("textbook:{}", call.key);
        let taken = self
            .ask(["SET", &key, PROCESSING, "NX", "PX", &lease])
            .await?;
        if taken == Reply::Nil {
            return self.result(&key).await;
        }
        let result = pay(call, self.is_slow).await;
        let told = match &result {
            Ok(value) => self.ask(["SET", &key, &value.to_string()]).await,
            Err(_) => self.ask(["DEL", &key]).await,
        };
        let value = result?;
        if let Err(error) = told {
            let _ = self.ask(["DEL", &key]).await;
            return Err(error);
        }
        Ok(value)
    }

    async fn result(&self, key: &str) -> Result<u64, Failed> {
        let text = self.ask(["GET", key]).await?.to_string();
        text.parse()
            .map_err(|_| Failed::unavailable("somebody is at it"))
    }

    async fn ask<const N: usize>(&self, command: [&str; N]) -> Result<Reply, Failed> {
        let (server, command) = (self.server, command.map(str::to_owned));
        let asked = tokio::task::spawn_blocking(move || ask(server, None, &command)).await;
        if let Ok(Ok(reply)) = asked {
            return Ok(reply);
        }
        Err(Failed::unavailable("no answer"))
    }
}

async fn pay(call: &Call, is_slow: bool) -> Result<u64, Failed> {
    // It has no fences; the time of the grant has what fences promise.
    let body = Body::begin(call, now());
    call.prepare().await;
    // What it can not stand at all: every other body outlives its lease.
    if is_slow && call.number.is_multiple_of(2) {
        tokio::time::sleep(LEASE * 3 / 2).await;
    }
    if body.declines() {
        return body.end_without_effect(Failed::Declined);
    }
    call.note(What::Happened);
    call.clear_up().await;
    body.end()
}
