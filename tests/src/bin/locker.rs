//! One process that holds a lock and writes under it, told by lines on stdin. `locks/paused.rs` is
//! its other end.
//!
//! Arguments: the Redis URL, the SQLite file of the accounts, the lease in milliseconds. It says
//! `ready`; then, for
//!
//! | line | its answer |
//! |---|---|
//! | `acquire` | the fence, or the error's code |
//! | `write BALANCE` | how many rows took it |
//! | `lost` | whether the lock is lost |
//! | `release` | `released`, or the error's code |

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use idem_core::{Idempotency, Key, LockGuard};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{QueryBuilder, Sqlite};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, file, lease] = arguments.as_slice() else {
        bail!("needs URL FILE LEASE, got {arguments:?}");
    };
    let lease = Duration::from_millis(lease.parse()?);
    let idem = Idempotency::redis(url).await?;
    let accounts = SqlitePool::connect_with(SqliteConnectOptions::new().filename(file)).await?;
    let mut held: Option<LockGuard> = None;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    println!("ready");
    while let Some(line) = lines.next_line().await? {
        let answer = match line.split_once(' ').unwrap_or((&line, "")) {
            ("acquire", _) => {
                let request = idem.lock(Key::new("account", 1)?).lease(lease);
                match request.wait(Duration::from_secs(10)).acquire().await {
                    Ok(lock) => held.insert(lock).fence().to_string(),
                    Err(error) => error.code().to_owned(),
                }
            }
            ("write", balance) => {
                let lock = held.as_ref().context("nothing is locked")?;
                match write(&accounts, lock, balance.parse()?).await? {
                    1 => "1 row".to_owned(),
                    rows => format!("{rows} rows"),
                }
            }
            ("lost", _) => held
                .as_ref()
                .context("nothing is locked")?
                .is_lost()
                .to_string(),
            ("release", _) => match held.take().context("nothing is locked")?.release().await {
                Ok(()) => "released".to_owned(),
                Err(error) => error.code().to_owned(),
            },
            _ => bail!("what is {line:?}?"),
        };
        println!("{answer}");
    }
    Ok(())
}

/// The resource's side of a lock: no write behind a later holder's.
async fn write(accounts: &SqlitePool, lock: &LockGuard, balance: i64) -> Result<u64> {
    let fence = lock.fence();
    let mut update = QueryBuilder::<Sqlite>::new("UPDATE account SET balance = ");
    update
        .push_bind(balance)
        .push(", fence = ")
        .push_bind(fence.as_i64())
        .push(" WHERE id = 1 AND ")
        .push(fence.condition("fence"));
    Ok(update.build().execute(accounts).await?.rows_affected())
}
