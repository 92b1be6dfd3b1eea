//! A token is issued to somebody, and used up by the same.

use std::time::Duration;

use anyhow::{Result, ensure};
use idem_core::{Idempotency, Tokens};
use redis::aio::MultiplexedConnection;
use redis::{Script, cmd};

use crate::rounds::Call;
use crate::sides::raw::{command, connection};

const TTL: Duration = Duration::from_mins(30);

/// Used up by its owner only: with GETDEL anybody could use it up.
const CONSUME: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])";

pub(super) struct Raw {
    connection: MultiplexedConnection,
    consume: Script,
}

impl Raw {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let consume = Script::new(CONSUME);
        let connection = connection(url, &[&consume]).await?;
        Ok(Self {
            connection,
            consume,
        })
    }
}

impl Call for Raw {
    async fn call(&self, number: u64) -> Result<()> {
        let mut connection = self.connection.clone();
        let (key, user) = (
            format!("idem:bench:token::{number:032x}"),
            number.to_string(),
        );
        let is_new: bool = cmd("SET")
            .arg(&key)
            .arg(&user)
            .arg("NX")
            .arg("PX")
            .arg(TTL.as_secs() * 1_000)
            .query_async(&mut connection)
            .await?;
        let consume = command(&self.consume, &key, &[user.as_bytes()]);
        let is_used: bool = consume.query_async(&mut connection).await?;
        ensure!(is_new && is_used, "a token of nobody else's was refused");
        Ok(())
    }
}

pub(super) struct Ours(Tokens);

impl Ours {
    pub(super) fn new(idem: &Idempotency) -> Self {
        Self(idem.tokens("bench:token"))
    }
}

impl Call for Ours {
    async fn call(&self, number: u64) -> Result<()> {
        let token = self.0.issue(number, TTL).await?;
        Ok(self.0.consume(&token, number).await?)
    }
}
