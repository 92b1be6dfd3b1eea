//! What the environment says.
//!
//! | variable | default | meaning |
//! |---|---|---|
//! | `LISTEN` | `127.0.0.1:8080`, or a free port if that is taken | address to serve on |
//! | `ORDERS_FILE` | a new file in the temporary folder | the `SQLite` file, always of the provider's ledger: all servers the same |
//! | `DATABASE_URL` | none: orders in the `SQLite` file too | where the orders are: `postgres://…`, `mysql://…` |
//! | `AMQP_URL` | none: no messages | the `RabbitMQ` broker whose messages ship orders |
//! | `SECRET` | random | signs sessions and the simulated provider's notifications; the same for all servers |
//! | `REDIS_URL` | none: records in this process | where the records are, such as `redis://127.0.0.1/` |

use std::env;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process;

use anyhow::{Context, bail};
use idem_core::store::redis::RedisStore;
use idem_core::{Idempotency, MemoryStore};
use tokio::net::TcpListener;

use crate::seal::Seal;

/// Of all records of this service, wherever they are.
pub const NAMESPACE: &str = "orders";

/// How the service was asked to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// The `SQLite` file.
    pub orders_file: PathBuf,
    /// Where the orders are.
    pub orders: Orders,
    /// Where messages come from, if they do.
    pub amqp_url: Option<String>,
    listen: Option<SocketAddr>,
    redis_url: Option<String>,
    /// Signs whatever has to be ours.
    pub seal: Seal,
}

/// Where the orders are.
#[derive(Debug, Clone)]
pub enum Orders {
    /// In the `SQLite` file.
    File,
    /// At this `postgres://…`.
    Postgres(String),
    /// At this `mysql://…`.
    MySql(String),
}

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    /// A `LISTEN` that is no address with a port; a `DATABASE_URL` of another kind.
    pub fn from_env() -> anyhow::Result<Self> {
        let said = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let listen = said("LISTEN")
            .map(|address| address.parse())
            .transpose()
            .context("LISTEN is no address such as 127.0.0.1:8080")?;
        Ok(Self {
            orders_file: said("ORDERS_FILE").map_or_else(temporary_file, PathBuf::from),
            orders: orders(said("DATABASE_URL"))?,
            amqp_url: said("AMQP_URL"),
            listen,
            redis_url: said("REDIS_URL"),
            seal: Seal::new(
                &said("SECRET").map_or_else(random, |secret| Ok(secret.into_bytes()))?,
            )?,
        })
    }

    /// The engine, with its records in Redis or in this process.
    ///
    /// # Errors
    /// What Redis says if it can not be used.
    pub async fn engine(&self) -> anyhow::Result<Idempotency> {
        let builder = match &self.redis_url {
            Some(url) => {
                let store = RedisStore::connect(url)
                    .await
                    .context("REDIS_URL can not be used")?;
                Idempotency::builder(store)
            }
            None => Idempotency::builder(MemoryStore::new()),
        };
        Ok(builder.namespace(NAMESPACE).build()?)
    }

    /// Where the records are, in words.
    #[must_use]
    pub fn records(&self) -> &'static str {
        match self.redis_url {
            Some(_) => "in Redis, by REDIS_URL",
            None => "in this process; REDIS_URL would let them outlive it",
        }
    }

    /// Where the orders are, in words.
    #[must_use]
    pub fn orders(&self) -> String {
        match self.orders {
            Orders::File => self.orders_file.display().to_string(),
            Orders::Postgres(_) => "in PostgreSQL, by DATABASE_URL".to_owned(),
            Orders::MySql(_) => "in MySQL or MariaDB, by DATABASE_URL".to_owned(),
        }
    }

    /// Begins to listen.
    ///
    /// # Errors
    /// If the address that was asked for can not be had.
    pub async fn listen(&self) -> anyhow::Result<TcpListener> {
        if let Some(address) = self.listen {
            return TcpListener::bind(address)
                .await
                .with_context(|| format!("LISTEN={address} can not be had"));
        }
        match TcpListener::bind("127.0.0.1:8080").await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Ok(TcpListener::bind("127.0.0.1:0").await?)
            }
            bound => Ok(bound?),
        }
    }
}

/// The URL may hold a password: no message shows it.
fn orders(url: Option<String>) -> anyhow::Result<Orders> {
    let Some(url) = url else {
        return Ok(Orders::File);
    };
    match url.split_once("://") {
        Some(("postgres" | "postgresql", _)) => Ok(Orders::Postgres(url)),
        Some(("mysql" | "mariadb", _)) => Ok(Orders::MySql(url)),
        _ => bail!("DATABASE_URL begins with postgres:// or mysql://; ORDERS_FILE names a file"),
    }
}

fn random() -> anyhow::Result<Vec<u8>> {
    let mut secret = vec![0; 32];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

fn temporary_file() -> PathBuf {
    env::temp_dir().join(format!("idem-orders-{}.sqlite", process::id()))
}
