//! The floor: the two scripts that any guard over Redis needs, over the same client, and nothing
//! around them.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo, Script, Value};

use super::{EXPIRE, Side};
use crate::order::{Order, RECEIPT_BYTES};

const CLAIM: &str = "
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return redis.call('GET', KEYS[1])";

const SETTLE: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1";

const EXPIRE_MS: u64 = EXPIRE * 1_000;

pub(crate) struct Raw {
    connection: MultiplexedConnection,
    claim: Script,
    settle: Script,
    expire: String,
    receipt: Vec<u8>,
    attempts: AtomicU64,
}

impl Side for Raw {
    async fn connect(url: &str) -> Result<Self> {
        let (claim, settle) = (Script::new(CLAIM), Script::new(SETTLE));
        let connection = connection(url, &[&claim, &settle]).await?;
        Ok(Self {
            connection,
            claim,
            settle,
            expire: EXPIRE_MS.to_string(),
            receipt: vec![b'x'; RECEIPT_BYTES],
            attempts: AtomicU64::new(0),
        })
    }

    async fn pay(&self, order: Order) -> Result<()> {
        let key = format!("idem:bench:raw::{}", order.number);
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let owner = u128::from(attempt).to_be_bytes();
        let claim = command(&self.claim, &key, &[&owner, self.expire.as_bytes()]);
        let mut connection = self.connection.clone();
        match connection.send_packed_command(&claim).await? {
            Value::Int(1) => {}
            Value::BulkString(receipt) if receipt.len() == RECEIPT_BYTES => return Ok(()),
            other => bail!("the claim was answered {other:?}"),
        }
        let settle = [&owner, &self.receipt[..], self.expire.as_bytes()];
        let settle = command(&self.settle, &key, &settle);
        match connection.send_packed_command(&settle).await? {
            Value::Int(1) => Ok(()),
            other => bail!("the settle was answered {other:?}"),
        }
    }
}

/// A connection to a server that knows `scripts`, set as our store sets its own: no timer of the
/// client's, and room for every task.
pub(crate) async fn connection(url: &str, scripts: &[&Script]) -> Result<MultiplexedConnection> {
    let info = url.into_connection_info()?;
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    let client = Client::open(info.set_tcp_settings(tcp))?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(1024);
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    for script in scripts {
        script.prepare_invoke().load_async(&mut connection).await?;
    }
    Ok(connection)
}

/// The script by its hash, on one key.
pub(crate) fn command(script: &Script, key: &str, args: &[&[u8]]) -> Cmd {
    let len = args.iter().map(|arg| arg.len()).sum::<usize>();
    let hash = script.get_hash();
    let mut cmd = Cmd::with_capacity(4 + args.len(), 8 + hash.len() + key.len() + len);
    cmd.arg("EVALSHA").arg(hash).arg("1").arg(key);
    for arg in args {
        cmd.arg(*arg);
    }
    cmd
}
